#include "counter.h"

const char *label(void) {
    return "counted";
}
