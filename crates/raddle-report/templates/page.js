(function () {
  "use strict";
  var data = JSON.parse(document.getElementById("data").textContent);
  var ROW = 38, TOP = 44, LEFT = 44, SVG = "http://www.w3.org/2000/svg";

  function make(parent, tag, attributes, text) {
    var element = document.createElementNS(SVG, tag);
    for (var key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    parent.appendChild(element);
    return element;
  }
  function html(parent, tag, text, name) {
    var element = document.createElement(tag);
    if (text) element.textContent = text;
    if (name) element.className = name;
    parent.appendChild(element);
    return element;
  }
  function cut(text, chars) {
    return text.length > chars ? text.slice(0, chars - 1) + "\u2026" : text;
  }

  // Draws one run. Returns the acts by row, for stepping.
  function draw(sheet, stacks, box, key) {
    var longest = 14, most = sheet.lanes.length < 4 ? 46 : 34;
    sheet.rows.forEach(function (row) {
      if (typeof row !== "number") row.forEach(function (act) {
        longest = Math.max(longest, Math.min(most, Math.max(act.w.length, act.p ? act.p.length : 0)));
      });
    });
    var lane = Math.round(longest * 7.3) + 46, chars = longest;
    var width = LEFT + lane * sheet.lanes.length, height = TOP + ROW * sheet.rows.length + 14;
    var svg = make(box, "svg", { width: width, height: height, viewBox: "0 0 " + width + " " + height, role: "group",
      "aria-label": "lanes of " + sheet.lanes.length + " threads, time runs down" });
    var defs = make(svg, "defs", {});
    ["b", "r"].forEach(function (color) {
      var marker = make(defs, "marker", { id: "arrow" + color + key, "class": color, viewBox: "0 0 8 8", refX: 7, refY: 4,
        markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" });
      make(marker, "path", { d: "M0 0L8 4L0 8z" });
    });
    function x(l) { return LEFT + lane * l + 22; }
    function y(r) { return TOP + ROW * r + ROW / 2; }
    sheet.lanes.forEach(function (names, l) {
      make(svg, "line", { "class": "rail", x1: x(l), x2: x(l), y1: TOP - 4, y2: height - 6 });
      make(svg, "text", { "class": "head", x: x(l) - 8, y: 16 }, cut(names[0] ? "thread " + names[0] : "unknown thread", chars));
      make(svg, "text", { "class": "dim", x: x(l) - 8, y: 32 }, cut(names[1], chars));
    });
    var depth = {};
    sheet.spans.forEach(function (span) {
      var top = y(span[3]), bottom = span[5] ? height - 8 : y(span[4]);
      var nth = depth[span[0]] = (depth[span[0]] || 0) + 1;
      var shift = span[1] === "region" ? -9 : span[1] === "waits" ? 5 : -5 - 5 * ((nth - 1) % 3);
      var group = make(svg, "g", {});
      make(group, "rect", { "class": span[1], x: x(span[0]) + shift - (span[1] === "region" ? 4 : 2), y: top,
        width: span[1] === "region" ? 26 : 5, height: Math.max(6, bottom - top), rx: 2 });
      make(group, "title", {}, verb(span[1]) + " " + span[2]);
    });
    sheet.edges.forEach(function (edge) {
      var from = [x(edge[1]), y(edge[0])], to = [x(edge[3]), y(edge[2])], kind = edge[4], path;
      if (kind === "lost") {
        to = [from[0] + lane * 0.45, from[1] + ROW * 0.42];
        path = "M" + from + "L" + to;
        make(svg, "text", { "class": "w", x: to[0] + 3, y: to[1] + 4, style: "fill:var(--red)" }, "\u2716 nobody");
      } else {
        var side = to[0] > from[0] ? 7 : -7;
        if (edge[0] === edge[2]) {
          var bend = kind === "waits" && side < 0 ? 15 : -15;
          path = "M" + [from[0] + side, from[1] + (bend > 0 ? 5 : -5)] + "Q" + [(from[0] + to[0]) / 2, from[1] + 1.6 * bend] + " " + [to[0] - side, to[1] + (bend > 0 ? 5 : -5)];
        } else {
          path = "M" + from + "L" + [to[0] - side, to[1] - 3];
        }
      }
      var line = make(svg, "path", { "class": "edge " + (kind === "waits" ? "wait" : kind), d: path });
      if (kind !== "missing") line.setAttribute("marker-end", "url(#arrow" + (kind === "ordered" ? "b" : "r") + key + ")");
      make(line, "title", {}, edge[5]);
    });
    var stops = [];
    sheet.rows.forEach(function (row, r) {
      if (typeof row === "number") {
        make(svg, "text", { "class": "fold", x: LEFT + 10, y: y(r) + 4 }, "\u22ee " + row + (row === 1 ? " step" : " steps"));
        return;
      }
      if (row.length > 1) make(svg, "line", { "class": "edge missing", x1: x(row[0].l), x2: x(row[row.length - 1].l), y1: y(r), y2: y(r) });
      var groups = row.map(function (act) {
        var group = make(svg, "g", { "class": "act " + (act.m || ""), tabindex: 0, role: "button",
          "aria-label": "thread " + sheet.lanes[act.l][0] + " " + act.w + (act.p ? " at " + act.p : "") });
        make(group, "rect", { "class": "hit", x: x(act.l) - 16, y: y(r) - ROW / 2 + 1, width: lane - 10, height: ROW - 2, rx: 4 });
        if (act.n) make(group, "text", { "class": "dim", x: LEFT - 8, y: y(r) + 4, "text-anchor": "end" }, act.n);
        if (act.m === "error") make(group, "path", { "class": "dot", d: "M" + x(act.l) + " " + (y(r) - 7) + "l7 7l-7 7l-7 -7z" });
        else make(group, "circle", { "class": "dot", cx: x(act.l), cy: y(r), r: 5 });
        make(group, "text", { "class": "w", x: x(act.l) + 14, y: y(r) - 2 }, cut(act.w, chars));
        make(group, "text", { "class": "dim", x: x(act.l) + 14, y: y(r) + 12 }, cut(act.p || "", chars));
        var stack = act.s !== undefined && stacks[act.s] ? stacks[act.s] : act.f ? "\n  in " + act.f : "";
        make(group, "title", {}, act.w + (act.p ? "\n" + act.p : "") + stack);
        return group;
      });
      stops.push({ row: r, acts: row, groups: groups });
    });
    if (sheet.more) html(box, "p", "and " + sheet.more + " more threads", "legend");
    return stops;
  }
  function verb(kind) {
    return { holds: "holds", reads: "holds for reading", waits: "waits for", region: "" }[kind];
  }

  // What threads hold and wait for after a row.
  function state(sheet, row) {
    var lines = [];
    sheet.spans.forEach(function (span) {
      if (span[1] !== "region" && span[3] <= row && (row < span[4] || (span[5] && row <= span[4])))
        lines.push("thread " + sheet.lanes[span[0]][0] + " " + verb(span[1]) + " " + (span[2] || "something"));
    });
    return lines.length ? lines.join("\n") : "no thread is known to hold a lock or to wait";
  }

  function figure(sheet, stacks, figureBox, key) {
    var pre = figureBox.querySelector("pre.lanes");
    var box = document.createElement("div"); box.className = "canvas";
    figureBox.insertBefore(box, pre);
    var stops = draw(sheet, stacks, box, key), at = stops.length - 1;
    var bar = document.createElement("div"); bar.className = "stepper";
    figureBox.insertBefore(bar, box);
    var back = html(bar, "button", "\u25c0 back"), forward = html(bar, "button", "forward \u25b6"), where = html(bar, "span", "", "legend");
    back.type = forward.type = "button";
    var told = document.createElement("div"); told.className = "state"; told.setAttribute("aria-live", "polite");
    figureBox.insertBefore(told, pre);
    var legend = document.createElement("p"); legend.className = "legend";
    [["--hold", "holds a lock"], ["--wait", "waits"], ["--blue", "happens before"], ["--red", "part of the error"], ["--amber", "differs from the recorded run"]].forEach(function (item) {
      html(legend, "b").style.background = "var(" + item[0] + ")";
      legend.appendChild(document.createTextNode(item[1]));
    });
    figureBox.insertBefore(legend, pre);
    var text = document.createElement("details"); html(text, "summary", "as text");
    figureBox.insertBefore(text, pre); text.appendChild(pre);
    function go(to, focus) {
      at = Math.max(0, Math.min(stops.length - 1, to));
      stops.forEach(function (stop, i) {
        stop.groups.forEach(function (group) {
          group.classList.toggle("now", i === at);
          group.classList.toggle("later", i > at);
        });
      });
      where.textContent = "step " + (at + 1) + " of " + stops.length + " shown (arrow keys)";
      var stop = stops[at];
      told.textContent = stop.acts.map(function (act) {
        return "thread " + sheet.lanes[act.l][0] + " " + act.w + (act.p ? " at " + act.p : "") + (act.f ? " in " + act.f : "");
      }).join("\n") + "\n" + state(sheet, stop.row);
      if (focus) stop.groups[0].focus({ preventScroll: true });
      var left = Math.min.apply(null, stop.acts.map(function (act) { return act.l; })) * (box.firstChild.clientWidth - LEFT) / sheet.lanes.length;
      if (left < box.scrollLeft || left + 120 > box.scrollLeft + box.clientWidth) box.scrollLeft = left;
    }
    stops.forEach(function (stop, i) {
      stop.groups.forEach(function (group, nth) {
        group.addEventListener("click", function () { go(i); jump(stop.acts[nth].a); });
        group.addEventListener("focus", function () { if (at !== i) go(i); });
        group.addEventListener("keydown", function (event) { if (event.key === "Enter") jump(stop.acts[nth].a); });
      });
    });
    back.addEventListener("click", function () { go(at - 1); });
    forward.addEventListener("click", function () { go(at + 1); });
    figureBox.addEventListener("keydown", function (event) {
      var to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: stops.length - 1 }[event.key];
      if (to === undefined || event.target.tagName === "SUMMARY") return;
      event.preventDefault(); go(to, event.target.tagName !== "BUTTON");
    });
    if (stops.length) go(at);
  }
  function jump(anchor) {
    var line = anchor && document.getElementById(anchor);
    if (!line) return;
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
    var bad = section.querySelector("figure.bad"), good = section.querySelector("figure.good");
    if (bad && drawing.bad) figure(drawing.bad, drawing.stacks, bad, "b" + number);
    if (good && drawing.good) figure(drawing.good, drawing.stacks, good, "g" + number);
    section.querySelectorAll(".commands dd").forEach(function (place) {
      if (!navigator.clipboard) return;
      var button = html(place, "button", "copy");
      button.type = "button";
      button.addEventListener("click", function () {
        navigator.clipboard.writeText(place.querySelector("code").textContent).then(function () { button.textContent = "copied"; }, function () { button.textContent = "select it"; });
      });
    });
  }
  sections.forEach(function (section) {
    if (section.open) show(section);
    section.addEventListener("toggle", function () { if (section.open) show(section); });
  });
  window.addEventListener("beforeprint", function () {
    sections.forEach(function (section) { if (section.open) show(section); });
  });

  var form = document.querySelector(".filter");
  if (form) {
    form.hidden = false;
    var search = document.getElementById("search"), grade = document.getElementById("grade"), kind = document.getElementById("kind"), matches = document.getElementById("matches");
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    var filter = function () {
      var text = search.value.toLowerCase(), shown = 0;
      sections.forEach(function (section) {
        var fits = (!grade.value || section.dataset.grade === grade.value) && (!kind.value || section.dataset.kind === kind.value) &&
          (!text || section.textContent.toLowerCase().indexOf(text) >= 0);
        section.hidden = !fits;
        if (fits) shown++;
      });
      matches.textContent = shown + " of " + sections.length;
    };
    [search, grade, kind].forEach(function (input) { input.addEventListener("input", filter); });
    filter();
  }
})();
