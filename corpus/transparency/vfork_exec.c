/* Starting other programs: posix_spawn, system, vfork + exec, popen, while a thread runs. Their output and status must come through. */
#include "corpus.h"
#include <semaphore.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;
static sem_t stop;
static void bystander(void) { sem_wait(&stop); }

int main(void) {
    sem_init(&stop, 0, 0);
    pthread_t thread = start(bystander);
    pid_t pid;
    int status = 0;
    char *arguments[] = {(char *)"sh", (char *)"-c", (char *)"echo spawned; exit 4", NULL};
    fflush(stdout);
    MUST(posix_spawn(&pid, "/bin/sh", NULL, NULL, arguments, environ) == 0);
    waitpid(pid, &status, 0);
    printf("%d\n", WEXITSTATUS(status));
    fflush(stdout);
    status = system("echo system; exit 5");
    printf("%d\n", WEXITSTATUS(status));
    fflush(stdout);
    pid = vfork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", "echo vforked; exit 6", (char *)NULL);
        _exit(1);
    }
    waitpid(pid, &status, 0);
    printf("%d\n", WEXITSTATUS(status));
    char line[32] = "";
    FILE *stream = popen("echo popened", "r");
    MUST(stream && fgets(line, sizeof line, stream));
    pclose(stream);
    printf("%s", line);
    sem_post(&stop);
    finish(thread);
    return 0;
}
