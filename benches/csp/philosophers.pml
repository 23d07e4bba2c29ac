/* N dining philosophers, the last one left-handed: the model that `bench_models::philosophers(N, true)` builds.
 * Seven steps a round as there: sit, first fork, second fork, eat, second down, first down, rise. The number of states
 * is the same, which the bench checks. Give N with -DN=...
 */
#ifndef N
#define N 4
#endif

bit fork[N];

proctype phil(byte i; byte first; byte second) {
  do
  :: skip;                                                /* sit */
     atomic { fork[first] == 0 -> fork[first] = 1 };
     atomic { fork[second] == 0 -> fork[second] = 1 };
     skip;                                                /* eat */
     fork[second] = 0;
     fork[first] = 0;
     skip                                                 /* rise */
  od
}

init {
  byte i = 0;
  atomic {
    do
    :: i < N - 1 -> run phil(i, i, i + 1); i++
    :: else -> run phil(i, 0, i); break
    od
  }
}
