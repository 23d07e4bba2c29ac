(function () {
  "use strict";
  var SVG = "http://www.w3.org/2000/svg";
  var data = JSON.parse(document.getElementById("data").textContent);
  // Kinds of lines; the words are those of the legend.
  var LINES = { ordered: "happens before", missing: "no order", lost: "lost signal", waits: "waits for" };
  var STRETCHES = { holds: "holds", reads: "holds for reading", waits: "waits for", region: "should be atomic" };

  function element(parent, tag, name, text) {
    var made = document.createElement(tag);
    if (name) made.className = name;
    if (text !== undefined) made.textContent = text;
    parent.appendChild(made);
    return made;
  }
  function shape(parent, tag, attributes, text) {
    var made = document.createElementNS(SVG, tag);
    for (var key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    parent.appendChild(made);
    return made;
  }
  // Words with what stands between backticks as code.
  function prose(parent, text) {
    var parts = text.split("`");
    parts.forEach(function (part, i) {
      if (i % 2 && i < parts.length - 1) element(parent, "code", "", part);
      else parent.appendChild(document.createTextNode((i % 2 ? "`" : "") + part));
    });
  }
  function plain(text) { return text.replace(/`/g, ""); }
  function plural(number, noun) {
    return number + " " + noun + (number === 1 ? "" : "s");
  }
  function laneName(lane) {
    return (lane[0] ? "thread " + lane[0] : "unknown thread") + (lane[1] ? " " + lane[1] : "");
  }

  // Which color a lock has: the same in both runs.
  function lockColors(sheets) {
    var colors = {}, next = 0;
    sheets.forEach(function (sheet) {
      if (sheet) sheet.spans.forEach(function (span) {
        if ((span[1] === "holds" || span[1] === "reads") && !(span[2] in colors)) colors[span[2]] = next++ % 5;
      });
    });
    return colors;
  }

  // One run: a list of rows with the lanes drawn beside them.
  function Run(sheet, colors, box, said, key) {
    this.sheet = sheet; this.colors = colors; this.key = key; this.said = said; this.stops = []; this.at = -1;
    var longest = sheet.lanes.reduce(function (most, lane) { return Math.max(most, lane[0].length); }, 1);
    this.pitch = Math.min(64, Math.max(30, longest * 7 + 12));
    this.width = this.pitch * sheet.lanes.length + 8;
    var text = box.querySelector("pre.lanes"), run = this;
    this.canvas = document.createElement("div"); this.canvas.className = "canvas";
    this.canvas.style.setProperty("--graph", this.width + "px");
    this.canvas.style.setProperty("--who", Math.min(longest, 12) + 0.6 + "ch");
    box.insertBefore(this.canvas, text);
    this.heads();
    this.area = element(this.canvas, "div", "area");
    this.svg = shape(this.area, "svg", { "class": "graph", width: this.width, "aria-hidden": "true" });
    this.rows();
    this.legend(box, text);
    var fold = document.createElement("details"); fold.className = "as-text";
    element(fold, "summary", "", "The same as text");
    box.insertBefore(fold, text); fold.appendChild(text);
    this.bar(box);
    this.draw();
    if (window.ResizeObserver) new ResizeObserver(function () { run.draw(); }).observe(this.list);
    else window.addEventListener("resize", function () { run.draw(); });
    if (document.fonts && document.fonts.ready) document.fonts.ready.then(function () { run.draw(); });
  }
  Run.prototype.x = function (lane) { return this.pitch * (lane + 0.5) + 4; };

  Run.prototype.heads = function () {
    var head = element(this.canvas, "div", "heads"), run = this;
    element(head, "span", "no");
    var names = element(head, "span", "paths");
    this.sheet.lanes.forEach(function (lane, at) {
      var path = element(names, "b", "", lane[0] || "?");
      path.style.left = run.x(at) + "px";
    });
    var who = element(head, "span", "who");
    this.sheet.lanes.forEach(function (lane) {
      var one = element(who, "span", "name");
      element(one, "b", "", lane[0] || "?");
      if (lane[1]) one.appendChild(document.createTextNode(" " + lane[1]));
      else one.hidden = true;
    });
    if (this.sheet.more) element(who, "span", "name", "and " + plural(this.sheet.more, "more thread"));
  };

  Run.prototype.rows = function () {
    var run = this, list = this.list = element(this.area, "ol", "rows");
    list.setAttribute("role", "list");
    this.places = [];
    this.sheet.rows.forEach(function (row, r) {
      if (typeof row === "number") {
        var fold = element(list, "li", "fold");
        element(fold, "span", "no");
        element(fold, "span", "graphed");
        element(fold, "span", "what", "\u22ee  " + plural(row, "step") + " not shown");
        run.places.push({ row: r, lane: -1, box: fold });
        return;
      }
      var group = list;
      if (row.length > 1) {
        var item = element(list, "li", "moment");
        group = element(item, "ol", "");
        group.setAttribute("role", "list");
        group.setAttribute("aria-label", "at the same moment");
      }
      var boxes = row.map(function (act) {
        var box = run.row(group, act, row.length > 1 || act.m === "error");
        run.places.push({ row: r, lane: act.l, act: act, box: box, dot: null });
        return box;
      });
      var at = run.stops.length;
      boxes.forEach(function (box, nth) {
        box.addEventListener("click", function () { run.go(at, false, nth); });
        box.addEventListener("focus", function () { if (run.at !== at || run.nth !== nth) run.go(at, false, nth); });
      });
      run.stops.push({ row: r, acts: row, boxes: boxes });
    });
  };

  Run.prototype.row = function (list, act, error) {
    var lane = this.sheet.lanes[act.l];
    var item = element(list, "li", "act " + (act.m || "plain"));
    item.tabIndex = -1;
    element(item, "span", "no", act.n ? String(act.n) : "");
    element(item, "span", "graphed");
    var what = element(item, "span", "what");
    var line = element(what, "span", "line1");
    element(line, "b", "thread", lane[0] || "?");
    line.appendChild(document.createTextNode(" "));
    prose(element(line, "span", "words"), act.w);
    if (act.m === "moved" || act.m === "new") {
      line.appendChild(document.createTextNode(" "));
      element(line, "span", "tag", act.m === "moved" ? "other order" : "only here");
    }
    if (act.p) element(what, "span", "place", act.p);
    if (act.c) element(what, "code", "code", act.c);
    item.title = plain(act.w) + (act.p ? "\n" + act.p : "") + (this.said(act) ? "\n" + this.said(act) : act.f ? "\nin " + act.f : "");
    item.setAttribute("aria-label", "step " + (act.n || (error ? "of the error" : "")) + ", " + laneName(lane) + " " + plain(act.w) + (act.p ? " at " + act.p : ""));
    return item;
  };

  Run.prototype.legend = function (box, before) {
    var legend = document.createElement("p"), run = this, kinds = {}, lines = {};
    legend.className = "legend";
    box.insertBefore(legend, before);
    function entry(name, text) {
      var one = element(legend, "span", "entry");
      element(one, "i", name).setAttribute("aria-hidden", "true");
      one.appendChild(document.createTextNode(text));
    }
    var locks = [];
    this.sheet.spans.forEach(function (span) {
      kinds[span[1]] = true;
      if ((span[1] === "holds" || span[1] === "reads") && locks.indexOf(span[2]) < 0) locks.push(span[2]);
    });
    locks.slice(0, 5).forEach(function (lock) { entry("bar lock" + run.colors[lock], "holds " + (lock || "a lock")); });
    if (kinds.waits) entry("bar waiting", "waits");
    if (kinds.region) entry("bar region", "should be atomic");
    this.sheet.edges.forEach(function (edge) { lines[edge[4]] = true; });
    if (lines.ordered) entry("stroke ordered", LINES.ordered);
    if (lines.missing) entry("stroke missing", LINES.missing);
    if (lines.waits) entry("stroke waitsfor", LINES.waits);
    if (lines.lost) entry("stroke missing", LINES.lost);
    if (!legend.childNodes.length) legend.remove();
  };

  // The buttons that step through the run.
  Run.prototype.bar = function (box) {
    var bar = document.createElement("div"), run = this;
    bar.className = "stepper"; bar.setAttribute("role", "group"); bar.setAttribute("aria-label", "step through this run");
    box.insertBefore(bar, this.canvas);
    [["\u21e4", "first step", function () { return 0; }], ["\u2190", "step back", function () { return run.at - 1; }],
      ["\u2192", "step forward", function () { return run.at + 1; }], ["\u21e5", "last step", function () { return run.stops.length - 1; }]].forEach(function (what) {
      var button = element(bar, "button", "", what[0]);
      button.type = "button"; button.title = what[1]; button.setAttribute("aria-label", what[1]);
      button.addEventListener("click", function () { run.go(what[2](), false); });
    });
    this.where = element(bar, "span", "where", "");
    this.canvas.addEventListener("keydown", function (event) {
      var to = { ArrowRight: run.at + 1, ArrowDown: run.at + 1, ArrowLeft: run.at - 1, ArrowUp: run.at - 1, Home: 0, End: run.stops.length - 1 }[event.key];
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.key === "Enter") { run.follow(); return; }
      if (to === undefined) return;
      event.preventDefault();
      run.go(to, true);
    });
  };

  // The lanes, where the rows are now.
  Run.prototype.draw = function () {
    var run = this, sheet = this.sheet, svg = this.svg, top = this.area.getBoundingClientRect().top;
    var height = this.list.offsetHeight;
    if (!height) return;
    while (svg.firstChild) svg.removeChild(svg.firstChild);
    svg.setAttribute("height", height);
    svg.setAttribute("viewBox", "0 0 " + this.width + " " + height);
    var defs = shape(svg, "defs", {});
    ["ordered", "waits", "lost"].forEach(function (kind) {
      var marker = shape(defs, "marker", { id: "arrow-" + kind + run.key, "class": "tip " + kind, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto" });
      shape(marker, "path", { d: "M0 .6L8 4L0 7.4z" });
    });
    var first = {}, last = {}, at = {};
    this.places.forEach(function (place) {
      var rect = place.box.getBoundingClientRect();
      place.y = rect.top - top + Math.min(rect.height / 2, 16);
      if (!(place.row in first)) first[place.row] = place.y;
      last[place.row] = place.y;
      if (place.lane >= 0) at[place.row + " " + place.lane] = place.y;
    });
    function y(row, lane, fallback) { var known = at[row + " " + lane]; return known === undefined ? fallback[row] : known; }
    sheet.lanes.forEach(function (lane, l) {
      shape(svg, "line", { "class": "rail", x1: run.x(l), x2: run.x(l), y1: 0, y2: height });
    });
    var held = {};
    sheet.spans.forEach(function (span) {
      var from = y(span[3], span[0], first), to = span[5] ? height - 3 : y(span[4], span[0], last), lane = span[0], x = run.x(lane);
      if (span[1] === "region") {
        shape(svg, "rect", { "class": "region", x: x - 11, y: from - 11, width: 22, height: to - from + 22, rx: 11 });
        return;
      }
      if (span[1] === "waits") {
        shape(svg, "line", { "class": "waiting", x1: x + 8, x2: x + 8, y1: from, y2: Math.max(to, from + 8) });
        return;
      }
      // Locks that are held together stand beside each other.
      var slots = held[lane] = held[lane] || [], slot = 0;
      while (slots[slot] !== undefined && slots[slot] > from) slot++;
      slots[slot] = to;
      shape(svg, "rect", { "class": "hold lock" + run.colors[span[2]] + (span[1] === "reads" ? " reading" : ""), x: x - 4 + (slot % 2 ? -1 : 1) * Math.ceil(slot / 2) * 8, y: from, width: 8, height: Math.max(8, to - from), rx: 2 });
    });
    sheet.edges.forEach(function (edge) {
      var kind = edge[4], x1 = run.x(edge[1]), x2 = run.x(edge[3]), y1 = y(edge[0], edge[1], first), y2 = y(edge[2], edge[3], first), d;
      var side = x2 > x1 ? 1 : -1;
      if (kind === "lost") {
        var out = edge[1] === sheet.lanes.length - 1 && edge[1] > 0 ? -1 : 1;
        d = "M" + (x1 + 7 * out) + " " + y1 + "h" + out * run.pitch * 0.45;
        shape(svg, "path", { "class": "cross", d: "M" + (x1 + out * (run.pitch * 0.45 + 8) - 4) + " " + (y1 - 4) + "l8 8m0 -8l-8 8" });
      } else if (kind === "missing") {
        d = "M" + x1 + " " + y1 + "L" + x2 + " " + y2;
      } else if (edge[1] === edge[3]) {
        d = "M" + (x1 + 7) + " " + y1 + "q8 " + (y2 - y1) / 2 + " 0 " + (y2 - y1);
      } else if (kind === "waits") {
        d = "M" + (x1 + 9 * side) + " " + y1 + "Q" + x2 + " " + y1 + " " + x2 + " " + (y2 + (y2 < y1 ? 10 : -10));
      } else {
        // Across first, then down beside the other lane, so that long edges do not hide what is between.
        var gutter = x2 - side * 11, bend = Math.min(20, Math.max(8, (y2 - y1) / 2));
        d = "M" + (x1 + 6 * side) + " " + (y1 + 1) + "Q" + gutter + " " + (y1 + 2) + " " + gutter + " " + (y1 + bend) + "V" + (y2 - 12) + "Q" + gutter + " " + (y2 - 3) + " " + (x2 - 6 * side) + " " + (y2 - 2);
      }
      var path = shape(svg, "path", { "class": "edge " + kind, d: d });
      if (kind === "ordered" || kind === "waits") path.setAttribute("marker-end", "url(#arrow-" + kind + run.key + ")");
      shape(path, "title", {}, edge[5]);
    });
    this.places.forEach(function (place) {
      if (place.lane < 0) return;
      var x = run.x(place.lane), group = shape(svg, "g", { "class": "dot " + (place.act.m || "plain") });
      if (place.act.m === "error") shape(group, "path", { d: "M" + x + " " + (place.y - 8) + "l8 8l-8 8l-8 -8z" });
      else shape(group, "circle", { cx: x, cy: place.y, r: 5.5 });
      place.dot = group;
    });
    this.mark();
  };

  Run.prototype.mark = function () {
    var at = this.at, stops = this.stops, row = at >= 0 ? stops[at].row : Infinity, ended = at === stops.length - 1;
    this.places.forEach(function (place) {
      var later = !ended && place.row > row;
      place.box.classList.toggle("later", later);
      if (place.dot) place.dot.classList.toggle("later", later);
    });
    var nth = this.nth || 0;
    stops.forEach(function (stop, i) {
      stop.boxes.forEach(function (box, n) {
        box.classList.toggle("now", i === at);
        box.tabIndex = i === at && n === nth ? 0 : -1;
        if (i === at) box.setAttribute("aria-current", "step");
        else box.removeAttribute("aria-current");
      });
    });
  };

  Run.prototype.go = function (to, focus, nth) {
    if (!this.stops.length) return;
    this.at = Math.max(0, Math.min(this.stops.length - 1, to));
    this.nth = nth || 0;
    this.mark();
    this.where.textContent = this.at + 1 + " / " + this.stops.length;
    if (focus) this.stops[this.at].boxes[this.nth].focus();
    if (this.changed) this.changed(this);
  };

  Run.prototype.follow = function () {
    jump(this.stops[this.at].acts[this.nth || 0].a);
  };

  // What each thread holds and waits for after a row.
  Run.prototype.state = function (row) {
    var sheet = this.sheet;
    return sheet.lanes.map(function (lane, l) {
      var state = { holds: [], waits: [], inside: false };
      sheet.spans.forEach(function (span) {
        if (span[0] !== l || !(span[3] <= row && (row < span[4] || (span[5] && row <= span[4])))) return;
        if (span[1] === "region") state.inside = true;
        else if (span[1] === "waits") state.waits.push(span[2] || "something");
        else state.holds.push((span[2] || "a lock") + (span[1] === "reads" ? " (reading)" : ""));
      });
      return state;
    });
  };

  // The panel that tells about the chosen step: where it is, its calls, and the state of all threads.
  function Inspector(box) {
    this.box = element(box, "section", "inspector");
    this.box.setAttribute("aria-label", "the chosen step");
    this.box.setAttribute("aria-live", "polite");
  }
  Inspector.prototype.show = function (run, title) {
    var stop = run.stops[run.at], act = stop.acts[run.nth || 0];
    this.box.textContent = "";
    var box = element(this.box, "div", "");
    var head = element(box, "h4", "");
    head.textContent = title + (act.n ? ", step " + act.n : stop.acts.length > 1 ? ", the moment of the error" : ", the error");
    var said = element(box, "p", "does");
    element(said, "b", "", laneName(run.sheet.lanes[act.l]) + " ");
    prose(said, act.w);
    run.sheet.edges.forEach(function (edge) {
      if (edge[2] === stop.row && edge[3] === act.l && edge[4] === "ordered") {
        var from = run.sheet.rows[edge[0]][0];
        element(box, "p", "ordered", "after step " + (from.n || "?") + " of thread " + run.sheet.lanes[edge[1]][0] + ": " + edge[5]);
      } else if (edge[0] === stop.row && edge[1] === act.l && (edge[4] === "missing" || edge[4] === "lost")) {
        element(box, "p", "missing", edge[5]);
      }
    });
    var line = act.a && document.getElementById(act.a);
    if (line) {
      var place = element(box, "p", "where"), link = element(place, "a", "", act.p + (act.f ? " in " + act.f : ""));
      link.href = "#" + act.a;
      link.addEventListener("click", function (event) { event.preventDefault(); jump(act.a); });
      var source = element(box, "pre", "near"), lines = [line], before = line.previousElementSibling, after = line.nextElementSibling;
      for (var n = 0; n < 2; n++) {
        if (before && before.classList.contains("line")) { lines.unshift(before); before = before.previousElementSibling; }
        if (after && after.classList.contains("line")) { lines.push(after); after = after.nextElementSibling; }
      }
      lines.forEach(function (one) {
        var copy = one.cloneNode(true);
        copy.removeAttribute("id");
        copy.className = one === line ? "line marked" : "line";
        source.appendChild(copy);
      });
    } else if (act.p) {
      element(box, "p", "where", act.p + (act.f ? " in " + act.f : ""));
    }
    if (run.said(act)) {
      element(box, "h5", "", "Calls");
      element(box, "pre", "calls", run.said(act));
    }
    box = element(this.box, "div", "");
    element(box, "h5", "", stop.row === run.stops[run.stops.length - 1].row ? "Threads at the end" : "Threads after this step");
    var table = element(box, "table", "threads"), body = element(table, "tbody", "");
    run.state(stop.row).forEach(function (state, l) {
      var row = element(body, "tr", state.waits.length ? "waits" : "");
      var name = element(row, "th", "", run.sheet.lanes[l][0] || "?");
      name.scope = "row";
      if (run.sheet.lanes[l][1]) element(name, "span", "", " " + run.sheet.lanes[l][1]);
      var cell = element(row, "td", "");
      if (state.holds.length) element(cell, "span", "holding", "holds " + state.holds.join(", "));
      if (state.waits.length) element(cell, "span", "waiting", "waits for " + state.waits.join(", "));
      if (!state.holds.length && !state.waits.length) element(cell, "span", "nothing", state.inside ? "in the region" : "holds nothing");
    });
  };

  // Threads and locks in a ring: who holds what, who waits for what.
  function ring(cycle, box) {
    var count = cycle.length * 2, width = Math.min(720, 420 + 60 * (cycle.length - 2)), height = 190 + 44 * (cycle.length - 2);
    var svg = shape(box, "svg", { "class": "ring", viewBox: "0 0 " + width + " " + height, width: width, height: height, role: "img",
      "aria-label": cycle.map(function (one) { return one.t + (one.h ? " holds " + plain(one.h) + " and" : "") + " waits for " + plain(one.w); }).join("; ") });
    var defs = shape(svg, "defs", {});
    var tip = shape(defs, "marker", { id: box.id + "tip", "class": "tip waits", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" });
    shape(tip, "path", { d: "M0 0L8 4L0 8z" });
    function place(n) {
      var angle = Math.PI + 2 * Math.PI * n / count;
      return [width / 2 + (width / 2 - 80) * Math.cos(angle), height / 2 + (height / 2 - 26) * Math.sin(angle)];
    }
    var nodes = [];
    cycle.forEach(function (one, i) {
      nodes.push({ text: one.t, kind: "who", at: place(2 * i) });
      nodes.push({ text: plain(one.w), kind: "lock", at: place(2 * i + 1) });
    });
    var drawn = nodes.map(function (node) {
      var group = shape(svg, "g", { "class": "node " + node.kind });
      var frame = shape(group, "rect", {}), text = shape(group, "text", { x: node.at[0], y: node.at[1] + 4.5, "text-anchor": "middle" }, node.text);
      var half = Math.max(22, (text.getComputedTextLength() || node.text.length * 7.4) / 2 + 12);
      frame.setAttribute("x", node.at[0] - half); frame.setAttribute("y", node.at[1] - 15);
      frame.setAttribute("width", 2 * half); frame.setAttribute("height", 30);
      frame.setAttribute("rx", node.kind === "lock" ? 15 : 4);
      return half;
    });
    // From the middle of one node to the edge of the other.
    function clip(from, to, half) {
      var dx = to[0] - from[0], dy = to[1] - from[1], scale = Math.min(Math.abs((half + 4) / (dx || 1e-9)), Math.abs(19 / (dy || 1e-9)));
      return [to[0] - dx * scale, to[1] - dy * scale];
    }
    nodes.forEach(function (node, i) {
      var next = (i + 1) % nodes.length, waits = node.kind === "who";
      // A thread waits for the lock after it; that lock is held by the thread after that.
      var from = clip(nodes[next].at, node.at, drawn[i]), to = clip(node.at, nodes[next].at, drawn[next]);
      var line = shape(svg, "line", { "class": waits ? "edge waits" : "edge held", x1: from[0], y1: from[1], x2: to[0], y2: to[1], "marker-end": "url(#" + box.id + "tip)" });
      var middle = [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2], right = middle[0] > width / 2, low = middle[1] > height / 2;
      shape(svg, "text", { "class": "label", x: middle[0] + (right ? 10 : -10), y: middle[1] + (low ? 14 : -6), "text-anchor": right ? "start" : "end" }, waits ? "waits for" : "held by");
      return line;
    });
  }

  function jump(anchor) {
    var line = anchor && document.getElementById(anchor), fold = line && line.closest("details.sources");
    if (!line) return;
    if (fold) fold.open = true;
    var old = document.querySelector(".target");
    if (old) old.classList.remove("target");
    line.classList.add("target");
    line.scrollIntoView({ block: "center" });
  }

  var sections = Array.prototype.slice.call(document.querySelectorAll("details.finding"));
  function show(section) {
    var number = sections.indexOf(section), drawing = data[number];
    if (section.drawn || !drawing) return;
    section.drawn = true;
    var colors = lockColors([drawing.good, drawing.bad]);
    function said(act) { return act.s !== undefined && drawing.stacks[act.s] ? drawing.stacks[act.s] : ""; }
    var box = section.querySelector(".runs"), runs = [];
    if (box && drawing.bad) {
      box.classList.add(drawing.good ? "two" : "one");
      var inspector = new Inspector(box);
      [["good", drawing.good], ["bad", drawing.bad]].forEach(function (which) {
        var figure = section.querySelector("figure." + which[0]);
        if (!figure || !which[1]) return;
        var run = new Run(which[1], colors, figure, said, which[0] + number);
        run.changed = function () { inspector.show(run, which[0] === "good" ? "Recorded run" : figure.dataset.title || "Erroneous run"); };
        runs.push(run);
      });
      runs.forEach(function (run) { run.go(run.stops.length - 1, false); });
      section.runs = runs;
    }
    var circle = section.querySelector(".ring");
    if (circle && drawing.cycle.length > 1 && drawing.cycle.length < 7) ring(drawing.cycle, circle);
    section.querySelectorAll(".commands dd").forEach(function (place) {
      if (!navigator.clipboard) return;
      var button = element(place, "button", "copy", "Copy");
      button.type = "button";
      button.setAttribute("aria-label", "Copy: " + place.previousElementSibling.textContent);
      button.addEventListener("click", function () {
        navigator.clipboard.writeText(place.querySelector("code").textContent).then(function () { button.textContent = "Copied"; }, function () { button.textContent = "Select it"; });
      });
    });
  }
  sections.forEach(function (section) {
    if (section.open) show(section);
    section.addEventListener("toggle", function () { if (section.open) show(section); });
  });
  function lookup() {
    var wanted = decodeURIComponent(location.hash.slice(1)), section = wanted && document.getElementById(wanted);
    if (section && section.matches("details.finding")) { section.open = true; section.scrollIntoView(); }
  }
  window.addEventListener("hashchange", lookup);
  lookup();
  // Paper has another width than the window: the pictures keep the width that they have.
  window.addEventListener("beforeprint", function () {
    sections.forEach(function (section) {
      if (section.open) show(section);
      (section.runs || []).forEach(function (run) {
        run.canvas.style.width = Math.min(run.canvas.clientWidth || 640, 640) + "px";
        run.draw();
      });
    });
  });
  window.addEventListener("afterprint", function () {
    sections.forEach(function (section) {
      (section.runs || []).forEach(function (run) { run.canvas.style.width = ""; run.draw(); });
    });
  });

  var form = document.querySelector(".filter");
  if (form) {
    form.hidden = false;
    var search = document.getElementById("search"), grade = document.getElementById("grade"), kind = document.getElementById("kind"), matches = document.getElementById("matches");
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    var texts = null;
    var filter = function () {
      var text = search.value.toLowerCase(), shown = 0;
      if (text && !texts) texts = sections.map(function (section) { return section.textContent.toLowerCase(); });
      sections.forEach(function (section, i) {
        var fits = (!grade.value || section.dataset.grade === grade.value) && (!kind.value || section.dataset.kind === kind.value) &&
          (!text || texts[i].indexOf(text) >= 0);
        section.hidden = !fits;
        if (fits) shown++;
      });
      matches.textContent = shown + " of " + sections.length;
    };
    [search, grade, kind].forEach(function (input) { input.addEventListener("input", filter); });
    filter();
  }
})();
