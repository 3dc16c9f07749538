//! What work cost: processor time and memory, as the kernel counts them. Both hold on a loaded machine.

use std::thread;
use std::time::{Duration, Instant};

/// What a process cost from its start to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time of all of its threads and of the processes it waited for.
    pub cpu: Duration,
    /// Largest resident set in kB. The kernel counts what the parent held when it started the process: a test that
    /// looks at this must be small itself.
    pub peak_kb: u64,
}

/// Waits for a child process that nobody else waits for: its exit code (`None` = ended by a signal) and its cost.
///
/// # Panics
/// When it does not end in time.
#[must_use]
#[allow(unsafe_code)]
pub fn wait(pid: u32, limit: Duration) -> (Option<i32>, Usage) {
    let pid = i32::try_from(pid).unwrap_or_else(|e| panic!("process {pid}: {e}"));
    let end = Instant::now() + limit;
    loop {
        let mut status = 0;
        // SAFETY: zero is a value of every field, and both pointers are to live variables of the right type.
        let (got, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            (libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage), usage)
        };
        if got == pid {
            let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
            let cpu = time(usage.ru_utime) + time(usage.ru_stime);
            return (code, Usage { cpu, peak_kb: u64::try_from(usage.ru_maxrss).unwrap_or(0) });
        }
        if Instant::now() > end {
            // SAFETY: sends a signal to a child that was not waited for yet.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            panic!("the program did not end");
        }
        thread::sleep(Duration::from_millis(3));
    }
}

fn time(value: libc::timeval) -> Duration {
    let part = |n: i64| u64::try_from(n).unwrap_or(0);
    Duration::from_secs(part(value.tv_sec)) + Duration::from_micros(part(value.tv_usec))
}

/// Processor time of the calling thread so far.
///
/// # Panics
/// When the system has no such clock.
#[must_use]
#[allow(unsafe_code)]
pub fn thread_time() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live variable of the right type.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    assert_eq!(failed, 0, "no clock for the time of a thread");
    let part = |n: i64| u64::try_from(n).unwrap_or(0);
    Duration::from_secs(part(now.tv_sec)) + Duration::from_nanos(part(now.tv_nsec))
}

/// Processor time of a process that runs, in ticks of the kernel (10 ms as a rule).
///
/// # Panics
/// When there is no such process.
#[must_use]
pub fn ticks(pid: u32) -> u64 {
    let path = format!("/proc/{pid}/stat");
    let stat = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    // Behind the name, which may hold anything: state, parent … user time, system time.
    let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(11);
    let mut next = || fields.next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    next() + next()
}

/// The smallest cost of three tries.
#[must_use]
pub fn best(mut work: impl FnMut() -> Duration) -> Duration {
    (0..3).map(|_| work()).min().unwrap_or_default()
}

/// Demands that work on four times the data costs about four times as much; quadratic work costs sixteen times.
///
/// # Panics
/// When it costs far more.
pub fn assert_linear(what: &str, mut cost: impl FnMut(usize) -> Duration, size: usize) {
    let (small, large) = (best(|| cost(size)), best(|| cost(4 * size)));
    // What is too quick to measure is not slow either.
    let small = small.max(Duration::from_micros(500));
    println!("{what}: {small:?} for {size}, {large:?} for four times as much");
    let ratio = large.as_secs_f64() / small.as_secs_f64();
    assert!(ratio <= 7.0, "{what}: {small:?} for {size}, {large:?} for four times as much: {ratio:.1} times");
}
