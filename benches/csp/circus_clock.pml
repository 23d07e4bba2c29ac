/* A clock over a memory whose seconds are chosen anew when a minute ends: `CTOCPre` of the project Circus2CSP, with N
 * seconds in a minute (crates/raddle-csp/tests/circus.rs has the same machine). The environment may do `tick` or `time`
 * at any moment, so an invalid end state is a deadlock. Both are marked as progress: a non-progress cycle (`pan -l`) is a
 * divergence.
 */
#ifndef N
#define N 5
#endif

byte sec, min;

active proctype Clock() {
  byte m, s, chosen;
  sec = 0;
  min = 0;
  do
  :: m = min;
     s = sec;
     if
     :: true ->
progress_tick:
        sec = (s + 1) % N;
        m = min;
        s = sec;
        if
        :: s != 0
        :: s == 0 ->
           assert(m < N);
           chosen = 0;
           do
           :: chosen < N - 1 -> chosen++
           :: break
           od;
           min = 1;
           sec = chosen
        fi
     :: true ->
progress_time:
        skip
     fi
  od
}
