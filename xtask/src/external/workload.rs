//! Workloads: what each external program is asked to do. Inputs are generated, so that every machine does the same.

use super::Prefix;
use anyhow::{Context, bail};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Bytes of the file that pbzip2 packs, in blocks of 100 kB.
const FILE_BYTES: usize = 3_000_000;
/// The same for demos.
const LARGE_FILE_BYTES: usize = 50_000_000;
const FRAME: (usize, usize) = (176, 144);
const FRAMES: usize = 30;
const CLIENTS: usize = 4;
const KEYS: usize = 200;

fn command(program: &Path, prefix: Prefix<'_>) -> Command {
    match prefix.split_first() {
        Some((first, rest)) => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
        None => Command::new(program),
    }
}

fn output(mut command: Command) -> anyhow::Result<Vec<u8>> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed ({})\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.stdout)
}

/// Bytes that compress a little, the same every time.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 12345u32;
    (0..bytes)
        .map(|_| {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            b"the quick brown fox jumps"[(state >> 16) as usize % 25]
        })
        .collect()
}

/// Packs a file with four threads and unpacks it again.
pub fn pbzip2(program: &Path, prefix: Prefix<'_>, scratch: &Path) -> anyhow::Result<Vec<u8>> {
    let input = scratch.join("input");
    std::fs::write(&input, noise(FILE_BYTES))?;
    let mut pack = command(program, prefix);
    pack.args(["-1", "-b1", "-p4", "-k", "-c"]).arg(&input);
    let packed = output(pack)?;
    let packed_path = scratch.join("packed.bz2");
    std::fs::write(&packed_path, &packed)?;
    let mut unpack = command(program, prefix);
    unpack.args(["-d", "-p4", "-k", "-c"]).arg(&packed_path);
    let unpacked = output(unpack)?;
    if unpacked != std::fs::read(&input)? {
        bail!("what was packed and unpacked is not what it was");
    }
    Ok(packed)
}

/// Packs a large file with four threads.
pub fn pbzip2_large(program: &Path, prefix: Prefix<'_>, scratch: &Path) -> anyhow::Result<Vec<u8>> {
    let input = scratch.join("input");
    std::fs::write(&input, noise(LARGE_FILE_BYTES))?;
    let mut pack = command(program, prefix);
    pack.args(["-9", "-p4", "-k", "-c", "-q"]).arg(&input);
    output(pack)
}

/// SQLite's own test of threads that share a database in memory.
pub fn sqlite3_threads(program: &Path, prefix: Prefix<'_>, scratch: &Path) -> anyhow::Result<Vec<u8>> {
    let mut test = command(program, prefix);
    test.current_dir(scratch);
    output(test)
}

/// A server with four threads and four clients that store, read and count, each with keys of its own.
pub fn memcached(program: &Path, prefix: Prefix<'_>, _scratch: &Path) -> anyhow::Result<Vec<u8>> {
    memcached_timed(program, prefix, &mut 0.0)
}

fn memcached_timed(program: &Path, prefix: Prefix<'_>, seconds: &mut f64) -> anyhow::Result<Vec<u8>> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut server = command(program, prefix);
    server.args(["-A", "-t", "4", "-U", "0", "-l", "127.0.0.1", "-p", &port.to_string()]);
    if rustix::process::geteuid().is_root() {
        server.args(["-u", "root"]);
    }
    let mut server =
        server.stderr(Stdio::null()).spawn().with_context(|| format!("cannot start {server:?}"))?;
    let result = talk(port, &mut server, seconds);
    if result.is_err() {
        let _ = server.kill();
    }
    let _ = server.wait();
    result
}

/// CPU time of the server and wall time of all requests, in seconds.
pub fn memcached_cost(program: &Path, prefix: Prefix<'_>) -> anyhow::Result<(f64, f64)> {
    let before = children_cpu_s();
    let mut wall = 0.0;
    memcached_timed(program, prefix, &mut wall)?;
    Ok((children_cpu_s() - before, wall))
}

/// CPU time of all processes that this one has waited for.
fn children_cpu_s() -> f64 {
    // SAFETY: `rusage` is plain numbers, for which all zeroes is a value; the pointer is to a live variable.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn talk(port: u16, server: &mut Child, seconds: &mut f64) -> anyhow::Result<Vec<u8>> {
    let start = Instant::now();
    let first = loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => break stream,
            Err(_) if start.elapsed() < Duration::from_secs(60) && server.try_wait()?.is_none() => {
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(error) => return Err(error).context("the server does not answer"),
        }
    };
    let asked = Instant::now();
    let replies: Vec<anyhow::Result<Vec<u8>>> = std::thread::scope(|scope| {
        let clients: Vec<_> =
            (0..CLIENTS).map(|client| scope.spawn(move || one_client(port, client))).collect();
        clients.into_iter().map(|client| client.join().expect("a client does not panic")).collect()
    });
    *seconds = asked.elapsed().as_secs_f64();
    let mut all = Vec::new();
    for reply in replies {
        all.extend(reply?);
    }
    (&first).write_all(b"shutdown graceful\r\n")?;
    Ok(all)
}

fn one_client(port: u16, client: usize) -> anyhow::Result<Vec<u8>> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut replies = Vec::new();
    let mut ask = |question: String, last: &str| -> anyhow::Result<()> {
        (&stream).write_all(question.as_bytes())?;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                bail!("the server hung up");
            }
            replies.extend_from_slice(line.as_bytes());
            if last.is_empty() || line.trim_end() == last {
                return Ok(());
            }
        }
    };
    for key in 0..KEYS {
        let value = format!("value {client} {}", key * 7);
        ask(format!("set k{client}.{key} 0 0 {}\r\n{value}\r\n", value.len()), "")?;
        ask(format!("get k{client}.{key}\r\n"), "END")?;
    }
    ask(format!("set n{client} 0 0 1\r\n0\r\n"), "")?;
    for _ in 0..KEYS {
        ask(format!("incr n{client} 3\r\n"), "")?;
    }
    Ok(replies)
}

/// A sort large enough for worker threads, joins and an index.
pub fn sqlite3(program: &Path, prefix: Prefix<'_>, _scratch: &Path) -> anyhow::Result<Vec<u8>> {
    let script = "PRAGMA threads=4; PRAGMA cache_size=200;\n\
        CREATE TABLE t(a INTEGER PRIMARY KEY, b INTEGER, c TEXT);\n\
        WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<60000)\n\
        INSERT INTO t SELECT i, (i*7919)%60013, printf('row %d', i) FROM n;\n\
        CREATE INDEX tb ON t(b, c);\n\
        SELECT count(*), sum(b), max(c) FROM t;\n\
        SELECT a, b, c FROM t ORDER BY c DESC, b LIMIT 500;\n\
        SELECT x.a, y.a FROM t x JOIN t y ON x.b = y.b + 1 ORDER BY x.c LIMIT 200;\n";
    let mut sqlite = command(program, prefix);
    sqlite.arg(":memory:").arg(script);
    output(sqlite)
}

/// Encodes generated frames with four threads; the encoder is deterministic for a given number of threads.
pub fn x264(program: &Path, prefix: Prefix<'_>, scratch: &Path) -> anyhow::Result<Vec<u8>> {
    let (width, height) = FRAME;
    let input = scratch.join("frames.yuv");
    let mut frames = Vec::with_capacity(width * height * 3 / 2 * FRAMES);
    for frame in 0..FRAMES {
        for y in 0..height {
            frames.extend((0..width).map(|x| (x * 2 + y * 3 + frame * 5) as u8));
        }
        for plane in 0..2 {
            frames.extend((0..width * height / 4).map(|i| (128 + (i / 44 + frame + plane) % 32) as u8));
        }
    }
    std::fs::write(&input, frames)?;
    let encoded = scratch.join("encoded.264");
    let mut encode = command(program, prefix);
    encode.args(["--threads", "4", "--preset", "fast", "--input-res", &format!("{width}x{height}")]);
    encode.args(["--quiet", "--no-progress", "-o"]).arg(&encoded).arg(&input);
    output(encode)?;
    Ok(std::fs::read(&encoded)?)
}
