#ifndef PLAIN_SEQ_H
#define PLAIN_SEQ_H
struct plain_seq {
    unsigned version;
    long pair[2];
};
void plain_seq_write(struct plain_seq *seq, long a, long b);
/* Returns the version whose two values it has read. */
unsigned plain_seq_read(struct plain_seq *seq, long pair[2]);
#endif
