/* Peterson's algorithm for N processes (the filter lock), as `bench_models::mutual_exclusion(N)` builds it: a process
 * climbs N-1 levels; at each it says so, makes itself the last to arrive, and waits until another came after it or
 * nobody else is as high. Waiting reads its condition in one step, in both models. Give N with -DN=...
 */
#ifndef N
#define N 3
#endif

byte level[N];
byte last[N];
byte inside;

/* highest(i, l): nobody but i is at level l or above. */
#if N == 2
#define highest(i, l) ((i == 0 || level[0] < l) && (i == 1 || level[1] < l))
#elif N == 3
#define highest(i, l) ((i == 0 || level[0] < l) && (i == 1 || level[1] < l) && (i == 2 || level[2] < l))
#elif N == 4
#define highest(i, l) ((i == 0 || level[0] < l) && (i == 1 || level[1] < l) && (i == 2 || level[2] < l) && (i == 3 || level[3] < l))
#elif N == 5
#define highest(i, l) ((i == 0 || level[0] < l) && (i == 1 || level[1] < l) && (i == 2 || level[2] < l) && (i == 3 || level[3] < l) && (i == 4 || level[4] < l))
#endif

proctype process(byte i) {
  byte l;
  do
  :: d_step { l = 1; level[i] = 1 };
     do
     :: last[l] = i;
        if
        :: l < N - 1 && (last[l] != i || highest(i, l)) -> d_step { l++; level[i] = l }
        :: l == N - 1 && (last[l] != i || highest(i, l)) -> break
        fi
     od;
     atomic { inside++; assert(inside == 1) };
     d_step { inside--; l = 0; level[i] = 0 }
  od
}

init {
  byte i = 0;
  atomic {
    do
    :: i < N -> run process(i); i++
    :: else -> break
    od
  }
}
