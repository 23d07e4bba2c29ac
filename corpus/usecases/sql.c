/* Use case 4, the core calls of an SQL library (a stand-in with the same names and order rules): a statement may be stepped only between prepare and finalize.
 * Main finalizes without waiting for the thread that steps; both calls are safe for threads. -DCORRECT joins first. */
#include "corpus.h"

typedef struct {
    int open;
} sqlite3;
typedef struct {
    int prepared, row;
    sqlite3 *owner; /* so that no compiler leaves the argument out of the call */
} sqlite3_stmt;

MUTEX(internal);
static sqlite3 database;
static sqlite3_stmt statement;

int sqlite3_open(const char *name, sqlite3 **out) {
    (void)name;
    LOCK(internal);
    database.open = 1;
    *out = &database;
    UNLOCK(internal);
    return 0;
}

int sqlite3_close(sqlite3 *db) {
    LOCK(internal);
    db->open = 0;
    UNLOCK(internal);
    return 0;
}

int sqlite3_prepare(sqlite3 *db, const char *sql, int length, sqlite3_stmt **out) {
    (void)sql, (void)length;
    LOCK(internal);
    statement.owner = db;
    statement.prepared = 1;
    statement.row = 0;
    *out = &statement;
    UNLOCK(internal);
    return 0;
}

int sqlite3_step(sqlite3_stmt *s) {
    LOCK(internal);
    int ok = s->prepared;
    s->row += ok;
    UNLOCK(internal);
    return ok ? 100 : 21;
}

int sqlite3_column(sqlite3_stmt *s, int column) {
    LOCK(internal);
    int value = s->row * 10 + column;
    UNLOCK(internal);
    return value;
}

int sqlite3_finalize(sqlite3_stmt *s) {
    LOCK(internal);
    s->prepared = 0;
    UNLOCK(internal);
    return 0;
}

static sqlite3_stmt *query;
static int result, value;

static void reader(void) {
    result = sqlite3_step(query); // PROPERTY:1
    value = sqlite3_column(query, 2);
}

int main(void) {
    sqlite3 *db;
    sqlite3_open("planets", &db);
    sqlite3_prepare(db, "select name from planets", -1, &query);
    pthread_t thread = start(reader);
#ifdef CORRECT
    finish(thread);
    sqlite3_finalize(query);
#else
    turn(1);
    sqlite3_finalize(query); // PROPERTY:2
    finish(thread);
#endif
    sqlite3_close(db);
    printf("%d %d\n", result, value);
    return 0;
}
