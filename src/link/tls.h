/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_TLS_H
#define GN_LINK_TLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/error.h"

/*
 * TLS 1.3 on a connected socket. What does it is a module, libgantry-tls.so, which is loaded by the
 * first connection that wants it: a program that stays on its machine never maps a TLS library. The
 * module fills the table below.
 *
 * One thread may send while another receives.
 */
struct gn_tls_ops;

/* Begins every connection; the rest is the module's. */
struct gn_tls {
    const struct gn_tls_ops *ops;
};

#define GN_TLS_KEY_BYTES 32
#define GN_TLS_TOKEN_MIN                                                                           \
    16 /* characters: who has seen a handshake may try shorter ones at leisure */
#define GN_TLS_IDENTITY_BYTES 32

/* A key that both sides know, and its name, which travels in the clear. */
struct gn_tls_psk {
    unsigned char identity[GN_TLS_IDENTITY_BYTES];
    unsigned char key[GN_TLS_KEY_BYTES];
};

/* What the connections of a server share: its certificate and key, read once. The module's. */
struct gn_tls_context;

/* How one side proves who it is, and whom it believes. */
struct gn_tls_config {
    bool server;
    const struct gn_tls_psk *psk;   /* a client's; or the only one that a server takes */
    bool asks_for_keys;             /* a server knows many: handshakes stop at GN_TLS_WANTS_KEY */
    struct gn_tls_context *context; /* a server's, of the same configuration; NULL: each its own */
    const char *certificate, *key;  /* files (PEM); NULL: none */
    const char *authority; /* file of certificates that the other side's must come from; NULL: none
                              is asked for */
    const char *host;      /* a client: what the server's certificate must name */
};

#define GN_TLS_MODULE_VERSION 4u

/* Where a handshake stands. */
enum {
    GN_TLS_DONE = 0,
    GN_TLS_READS,     /* poll for reading */
    GN_TLS_WRITES,    /* poll for writing */
    GN_TLS_WANTS_KEY, /* see wanted_key and give_key */
};

struct gn_tls_ops {
    uint32_t version;
    /* Reads a server's files. 0, or -errno and a sentence. Connections hold what they need of it.
     */
    int (*open_context)(const struct gn_tls_config *config, struct gn_tls_context **ret,
                        struct gn_error *err);
    void (*close_context)(struct gn_tls_context *context);
    /* Does not take fd. A sentence when it cannot be had; -ESHUTDOWN: the process is ending, and so
     * is TLS in it. */
    int (*start)(const struct gn_tls_config *config, int fd, struct gn_tls **ret,
                 struct gn_error *err);
    /* Where it stands now, or -errno with a sentence: refused. */
    int (*handshake)(struct gn_tls *t, struct gn_error *err);
    /* At GN_TLS_WANTS_KEY: the name of the key that the client means to prove itself by. Then
     * either the key, or NULL: there is none, and the client needs a certificate. */
    void (*wanted_key)(struct gn_tls *t, unsigned char ret[GN_TLS_IDENTITY_BYTES]);
    void (*give_key)(struct gn_tls *t, const struct gn_tls_psk *psk);
    /* The name of the key that the other side proved to have; false: it has shown a certificate. */
    bool (*identity)(struct gn_tls *t, unsigned char ret[GN_TLS_IDENTITY_BYTES]);
    /* The common name of the certificate that the other side has shown; "": none. */
    void (*subject)(struct gn_tls *t, char *ret, size_t n);
    ssize_t (*send)(struct gn_tls *t, const struct iovec *iov, int n, bool more);
    /* -ENOKEY: the other side wants a certificate; -EKEYREJECTED: it does not accept the one it was
     * shown. */
    ssize_t (*recv)(struct gn_tls *t, const struct iovec *iov, int n);
    bool (*has_more)(struct gn_tls *t);
    bool (*unsent)(struct gn_tls *t);
    void (*free)(struct gn_tls *t);
    /* A secret of a person's, to a key and its name. */
    int (*derive)(const void *secret, size_t n, struct gn_tls_psk *ret);
    bool (*same)(const void *a, const void *b,
                 size_t n); /* in a time that does not depend on the bytes */
};

/* The module's table, loaded once. NULL and a sentence: it is not installed. */
const struct gn_tls_ops *gn_tls_load(struct gn_error *err);

/* Starts TLS and shakes hands until the deadline. */
int gn_tls_connect(const struct gn_tls_config *config, int fd, uint64_t deadline_ns,
                   struct gn_tls **ret, struct gn_error *err);

static inline ssize_t gn_tls_send(struct gn_tls *t, const struct iovec *iov, int n, bool more)
{
    return t->ops->send(t, iov, n, more);
}

static inline ssize_t gn_tls_recv(struct gn_tls *t, const struct iovec *iov, int n)
{
    return t->ops->recv(t, iov, n);
}

static inline bool gn_tls_has_more(struct gn_tls *t)
{
    return t->ops->has_more(t);
}

static inline bool gn_tls_unsent(struct gn_tls *t)
{
    return t->ops->unsent(t);
}

static inline void gn_tls_free(struct gn_tls *t)
{
    t->ops->free(t);
}

#endif
