#ifndef COUNTER_H
#define COUNTER_H

#ifdef __cplusplus
extern "C" {
#endif

void counter_add(int amount);
int counter_value(void);
const char *label(void);

#ifdef __cplusplus
}
#endif

#endif
