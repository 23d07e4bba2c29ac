/* A library opened at run time, compiled like the program: its constructor runs, its threads use the program's mutex through a pointer.
 * Clean: the mutex guards the library's counter. */
#include "corpus.h"
#include <dlfcn.h>

MUTEX(m);
static int (*bump)(pthread_mutex_t *);

static void worker(void) {
    for (int i = 0; i < 10; i++) bump(&m);
}

int main(void) {
    void *library = dlopen("./libprimplug.so", RTLD_NOW);
    MUST(library != NULL);
    *(void **)&bump = dlsym(library, "plug_bump");
    MUST(bump != NULL);
    RUN(worker, worker);
    printf("%d\n", bump(&m));
    dlclose(library);
    return 0;
}
