/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_LINK_TLS_H
#define GN_LINK_TLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/error.h"

/*
 * TLS 1.3 on a connected socket. The implementation is a module, libgantry-tls.so, loaded when the
 * first connection needs it: a program that uses a gantryd of its own machine never maps a TLS
 * library. The module fills the table below.
 *
 * One thread may send while another receives.
 */
struct gn_tls_ops;

/* The common head of the module's connections. */
struct gn_tls {
    const struct gn_tls_ops *ops;
};

#define GN_TLS_KEY_BYTES 32
#define GN_TLS_TOKEN_MIN                                                                           \
    16 /* characters: shorter tokens can be guessed offline from a recorded handshake */
#define GN_TLS_IDENTITY_BYTES 32

/* A key known to both sides, and its name, which is sent in plain text. */
struct gn_tls_psk {
    unsigned char identity[GN_TLS_IDENTITY_BYTES];
    unsigned char key[GN_TLS_KEY_BYTES];
};

/* A server's certificate and key, shared by its connections. Defined by the module. */
struct gn_tls_context;

/* How one side authenticates itself, and which peers it accepts. */
struct gn_tls_config {
    bool server;
    const struct gn_tls_psk *psk;   /* a client's key; for a server the only key that it accepts */
    bool asks_for_keys;             /* a server with many keys: handshakes return
                                     * GN_TLS_WANTS_KEY */
    struct gn_tls_context *context; /* a server's, with the same configuration; NULL: the
                                     * connection makes its own */
    const char *certificate, *key;  /* files (PEM); NULL: none */
    const char *authority; /* file of certificates that must have signed the peer's; NULL: a
                            * server asks for no certificate */
    const char *host;      /* a client: the name that the server's certificate must contain */
};

#define GN_TLS_MODULE_VERSION 4u

/* The state of a handshake. */
enum {
    GN_TLS_DONE = 0,
    GN_TLS_READS,     /* poll for reading */
    GN_TLS_WRITES,    /* poll for writing */
    GN_TLS_WANTS_KEY, /* see wanted_key and give_key */
};

struct gn_tls_ops {
    uint32_t version;
    /* Reads a server's files. 0, or -errno and err. A connection holds its own reference. */
    int (*open_context)(const struct gn_tls_config *config, struct gn_tls_context **ret,
                        struct gn_error *err);
    void (*close_context)(struct gn_tls_context *context);
    /* Does not own fd. 0, or -errno and err; -ESHUTDOWN: the process is exiting. */
    int (*start)(const struct gn_tls_config *config, int fd, struct gn_tls **ret,
                 struct gn_error *err);
    /* Returns GN_TLS_*, or -errno and err: the handshake has failed. */
    int (*handshake)(struct gn_tls *t, struct gn_error *err);
    /*
     * After GN_TLS_WANTS_KEY: wanted_key returns the name of the key that the client offers.
     * give_key supplies that key, or NULL if it is unknown: then the client needs a certificate.
     */
    void (*wanted_key)(struct gn_tls *t, unsigned char ret[GN_TLS_IDENTITY_BYTES]);
    void (*give_key)(struct gn_tls *t, const struct gn_tls_psk *psk);
    /* The name of the key that the peer has proved; false: it authenticated by certificate. */
    bool (*identity)(struct gn_tls *t, unsigned char ret[GN_TLS_IDENTITY_BYTES]);
    /* The common name of the peer's certificate; "": no certificate. */
    void (*subject)(struct gn_tls *t, char *ret, size_t n);
    ssize_t (*send)(struct gn_tls *t, const struct iovec *iov, int n, bool more);
    /*
     * As gn_tcp_recv; also -ENOKEY: the peer requires a certificate; -EKEYREJECTED: the peer does
     * not accept ours.
     */
    ssize_t (*recv)(struct gn_tls *t, const struct iovec *iov, int n);
    bool (*has_more)(struct gn_tls *t);
    bool (*unsent)(struct gn_tls *t);
    void (*free)(struct gn_tls *t);
    /* Derives a key and its name from a token. */
    int (*derive)(const void *secret, size_t n, struct gn_tls_psk *ret);
    bool (*same)(const void *a, const void *b, size_t n); /* compares in constant time */
};

/* The module's table, loaded once. NULL and err: it is not installed. */
const struct gn_tls_ops *gn_tls_load(struct gn_error *err);

/* Starts TLS as a client and completes the handshake before the deadline. */
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
