// SPDX-License-Identifier: Apache-2.0
//! A chain of Rust functions as a release build makes them: see bench/workloads/README.md.

use std::hint::black_box;

extern "C" {
    fn clock() -> i64; // of the CPU, in microseconds
    fn prctl(option: i32, name: *const u8, ...) -> i32;
}

const PR_SET_NAME: i32 = 15;

macro_rules! link {
    ($name:ident, $next:ident) => {
        #[no_mangle]
        #[inline(never)]
        pub fn $name(x: u64) -> u64 {
            black_box($next(black_box(x) + 1)) + 1
        }
    };
}

#[no_mangle]
#[inline(never)]
pub fn chain_end(x: u64) -> u64 {
    let mut values: Vec<String> = (0..500).map(|i| format!("{}", (i * 7919 + x) % 1000)).collect();
    values.sort();
    values.iter().map(|v| v.len() as u64).sum::<u64>() & 1
}

link!(chain_h, chain_end);
link!(chain_g, chain_h);
link!(chain_f, chain_g);
link!(chain_e, chain_f);
link!(chain_d, chain_e);
link!(chain_c, chain_d);
link!(chain_b, chain_c);
link!(chain_a, chain_b);

#[no_mangle]
#[inline(never)]
pub fn chain_run(seconds: f64) -> u64 {
    let mut sum = 0;

    unsafe { prctl(PR_SET_NAME, b"warm\0".as_ptr()) };
    while unsafe { clock() } < 500_000 {
        sum = chain_a(sum & 1);
    }
    unsafe { prctl(PR_SET_NAME, b"hot\0".as_ptr()) };
    while (unsafe { clock() } as f64) < seconds * 1e6 {
        sum = chain_a(sum & 1);
    }
    sum
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let seconds = match arguments.iter().position(|a| a == "--seconds") {
        Some(i) => arguments[i + 1].parse().unwrap_or(2.0),
        None => 2.0,
    };

    black_box(chain_run(f64::min(seconds, 120.0)));
}
