/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgantry-tls.so: TLS 1.3 by OpenSSL, behind the table of tls.h. It is loaded with dlopen, also
 * into programs, so it exports one symbol and leaves signals, standard streams and the program's
 * OpenSSL settings alone. Ciphertext goes to a memory BIO and from there to send(), because
 * OpenSSL's socket BIO may raise SIGPIPE. Any thread; a lock per connection serializes the use of
 * its OpenSSL objects. Never blocks, apart from a bounded wait in exit().
 */
#include "link/tls.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"

/* External PSKs need a cipher suite with SHA-256. */
#define CIPHERS  "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
#define SESSIONS "gantry"
#define RECORD   16384u
#define OUT_BYTES                                                                                  \
    (128u << 10) /* ciphertext is sent once this much is buffered; while the socket is full no     \
                  * more is accepted */
#define READ_AHEAD (128u << 10)
#define LEAVE_NS                                                                                   \
    100000000u /* how long exit() waits for threads inside OpenSSL; calls are short                \
                */

struct tls {
    struct gn_tls base;
    struct gn_tls_config config;
    struct gn_tls_psk psk;
    bool has_psk, proved;
    enum { NOT_ASKED, ASKED, ANSWERED } key; /* a server with asks_for_keys */
    unsigned char wanted[GN_TLS_IDENTITY_BYTES];
    unsigned char proved_identity[GN_TLS_IDENTITY_BYTES];
    int fd;
    SSL_CTX *context;
    pthread_mutex_t lock;
    SSL *ssl;
    BIO *out;      /* ciphertext */
    size_t out_at; /* bytes of `out` that are sent */
    unsigned char record[RECORD];
};

static struct tls *of(struct gn_tls *t)
{
    return (struct tls *)t;
}

/*
 * ---- process exit
 *
 * Threads keep running during exit(), and OpenSSL's exit handler frees memory that connections use.
 * If this module initializes OpenSSL first, that handler is not registered, and static destructors
 * can still use their devices. If the program has initialized OpenSSL, a handler of ours runs
 * before OpenSSL's: it stops threads from entering OpenSSL and waits until those inside have left.
 */
static atomic_int inside;
static atomic_bool over;
static _Atomic pid_t owner; /* the process that `inside` counts: after a fork the parent's
                             * threads do not exist in the child */

static bool enter(void)
{
    atomic_fetch_add_explicit(&inside, 1, memory_order_seq_cst);
    if (!atomic_load_explicit(&over, memory_order_seq_cst))
        return true;
    atomic_fetch_sub_explicit(&inside, 1, memory_order_seq_cst);
    return false;
}

static void leave(void)
{
    atomic_fetch_sub_explicit(&inside, 1, memory_order_seq_cst);
}

/* Bounded: exit() may have been called in a signal handler that interrupted a thread inside. */
static void before_cleanup(void)
{
    uint64_t deadline = gn_now_ns() + LEAVE_NS;
    atomic_store_explicit(&over, true, memory_order_seq_cst);
    while (atomic_load_explicit(&inside, memory_order_seq_cst) > 0 &&
           atomic_load(&owner) == getpid() && gn_now_ns() < deadline)
        sched_yield();
}

static void begin_once(void)
{
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
    OPENSSL_atexit(before_cleanup);
}

static void begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin_once);
    if (atomic_exchange(&owner, getpid()) != getpid())
        atomic_store(&inside, 0);
}

/* The reason of OpenSSL's last error. */
static const char *reason(void)
{
    const unsigned long first = ERR_peek_error(), code = ERR_peek_last_error();
    /*
     * For a file that cannot be opened the last error is "system lib"; the first one has the errno.
     */
    if (code && ERR_SYSTEM_ERROR(first) && ERR_GET_REASON(code) == ERR_R_SYS_LIB)
        return strerror(ERR_GET_REASON(first));
    const char *text = code ? ERR_reason_error_string(code) : NULL;
    return text ? text : "no reason given";
}

/* ---- pre-shared keys */

static SSL_SESSION *session_of(SSL *ssl, const struct gn_tls_psk *psk)
{
    static const unsigned char suite[2] = {0x13, 0x01}; /* TLS_AES_128_GCM_SHA256 */
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, suite);
    SSL_SESSION *s = SSL_SESSION_new();
    if (s && cipher && SSL_SESSION_set1_master_key(s, psk->key, sizeof psk->key) &&
        SSL_SESSION_set_cipher(s, cipher) && SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION))
        return s;
    SSL_SESSION_free(s);
    return NULL;
}

static int offer_psk(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *n,
                     SSL_SESSION **ret)
{
    struct tls *t = SSL_get_app_data(ssl);
    *ret = NULL;
    if (!t->has_psk || (md && !EVP_MD_is_a(md, "SHA256")))
        return 1;
    *ret = session_of(ssl, &t->psk);
    *id = t->psk.identity;
    *n = sizeof t->psk.identity;
    return *ret != NULL;
}

static int find_psk(SSL *ssl, const unsigned char *id, size_t n, SSL_SESSION **ret)
{
    struct tls *t = SSL_get_app_data(ssl);
    struct gn_tls_psk found;
    *ret = NULL;
    if (n != sizeof found.identity)
        return 1; /* unknown key: the handshake continues, and fails unless there is a
                   * certificate */
    if (!t->has_psk || CRYPTO_memcmp(t->psk.identity, id, n) != 0)
        return 1;
    found = t->psk;
    memcpy(t->proved_identity, id, n);
    t->proved = true; /* valid once the handshake is done */
    *ret = session_of(ssl, &found);
    OPENSSL_cleanse(&found, sizeof found);
    return *ret != NULL;
}

/* Finds the first PSK identity of a ClientHello with the length of ours. RFC 8446, 4.2.11. */
static bool find_identity(SSL *ssl, unsigned char ret[GN_TLS_IDENTITY_BYTES])
{
    const unsigned char *at;
    size_t n;
    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_psk, &at, &n) != 1 || n < 2)
        return false;
    size_t left = (size_t)at[0] << 8 | at[1];
    at += 2;
    left = left < n - 2 ? left : n - 2;
    while (left >= 2) {
        const size_t bytes = (size_t)at[0] << 8 | at[1];
        if (left - 2 < bytes)
            return false;
        if (bytes == GN_TLS_IDENTITY_BYTES) {
            memcpy(ret, at + 2, bytes);
            return true;
        }
        const size_t whole = 2 + bytes + 4; /* obfuscated_ticket_age */
        if (whole > left)
            return false;
        at += whole;
        left -= whole;
    }
    return false;
}

static int greeted(SSL *ssl, int *alert, void *arg)
{
    struct tls *t = SSL_get_app_data(ssl);
    (void)alert;
    (void)arg;
    if (t->key != NOT_ASKED || !find_identity(ssl, t->wanted))
        return SSL_CLIENT_HELLO_SUCCESS;
    t->key = ASKED;
    return SSL_CLIENT_HELLO_RETRY;
}

static void wanted_key(struct gn_tls *base, unsigned char ret[GN_TLS_IDENTITY_BYTES])
{
    memcpy(ret, of(base)->wanted, GN_TLS_IDENTITY_BYTES);
}

static void give_key(struct gn_tls *base, const struct gn_tls_psk *psk)
{
    struct tls *t = of(base);
    t->has_psk = psk != NULL;
    if (psk)
        t->psk = *psk;
    t->key = ANSWERED;
}

static int derive(const void *secret, size_t n, struct gn_tls_psk *ret)
{
    static const char *const labels[2] = {"gantry token: name", "gantry token: key"};
    unsigned char *const to[2] = {ret->identity, ret->key};
    int good = 1;
    begin();
    if (!enter())
        return -ESHUTDOWN;
    for (int i = 0; i < 2; i++) {
        EVP_MD_CTX *c = EVP_MD_CTX_new();
        good = good && c && EVP_DigestInit_ex(c, EVP_sha256(), NULL) &&
               EVP_DigestUpdate(c, labels[i], strlen(labels[i]) + 1) &&
               EVP_DigestUpdate(c, secret, n) && EVP_DigestFinal_ex(c, to[i], NULL);
        EVP_MD_CTX_free(c);
    }
    leave();
    return good ? 0 : -ENOMEM;
}

static bool same(const void *a, const void *b, size_t n)
{
    return CRYPTO_memcmp(a, b, n) == 0;
}

/* ---- creation and destruction */

static int load_files(SSL_CTX *c, const struct gn_tls_config *config, struct gn_error *err)
{
    if (config->certificate && SSL_CTX_use_certificate_chain_file(c, config->certificate) != 1)
        return gn_fail(err, EINVAL, "give a file of certificates (PEM)",
                       "cannot use the certificate %s: %s", config->certificate, reason());
    if (config->key && SSL_CTX_use_PrivateKey_file(c, config->key, SSL_FILETYPE_PEM) != 1)
        return gn_fail(err, EINVAL, "give the private key of the certificate (PEM)",
                       "cannot use the key %s: %s", config->key, reason());
    if (config->certificate && config->key && SSL_CTX_check_private_key(c) != 1)
        return gn_fail(err, EINVAL, "give the key that belongs to it",
                       "the key %s is not that of the certificate %s", config->key,
                       config->certificate);
    if (config->authority && SSL_CTX_load_verify_file(c, config->authority) != 1)
        return gn_fail(err, EINVAL, "give a file of certificates (PEM)",
                       "cannot use the authority %s: %s", config->authority, reason());
    return 0;
}

static SSL_CTX *new_context(const struct gn_tls_config *config, struct gn_error *err)
{
    ERR_clear_error();
    SSL_CTX *c = SSL_CTX_new(config->server ? TLS_server_method() : TLS_client_method());
    if (!c || !SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) ||
        !SSL_CTX_set_ciphersuites(c, CIPHERS)) {
        gn_fail(err, ENOMEM, NULL, "TLS cannot be had: %s", reason());
        SSL_CTX_free(c);
        return NULL;
    }
    SSL_CTX_set_options(c, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(c, 0);
    SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(c, 1);
    SSL_CTX_set_default_read_buffer_len(c, READ_AHEAD);
    /*
     * A client requires a valid certificate unless a key is shared; a server requests certificates
     * if it has an authority.
     */
    if (!config->server)
        SSL_CTX_set_verify(c, SSL_VERIFY_PEER, NULL);
    else if (config->authority)
        SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    /*
     * OpenSSL treats an external PSK as a resumed session, and a server that requests certificates
     * resumes none without a session id context. A client must have no such context: it could not
     * resume a session created in another SSL_CTX.
     */
    if (config->server && SSL_CTX_set_session_id_context(c, (const unsigned char *)SESSIONS,
                                                         sizeof SESSIONS - 1) != 1) {
        gn_fail(err, ENOMEM, NULL, "TLS cannot be had: %s", reason());
        SSL_CTX_free(c);
        return NULL;
    }
    if (config->asks_for_keys)
        SSL_CTX_set_client_hello_cb(c, greeted, NULL);
    if (load_files(c, config, err)) {
        SSL_CTX_free(c);
        return NULL;
    }
    return c;
}

static SSL_CTX *context_of(const struct gn_tls_config *config, struct gn_error *err)
{
    SSL_CTX *shared = (SSL_CTX *)config->context;
    if (!shared)
        return new_context(config, err);
    SSL_CTX_up_ref(shared);
    return shared;
}

static void tls_free(struct gn_tls *base)
{
    struct tls *t = of(base);
    if (!enter())
        return;
    SSL_free(t->ssl); /* and its BIOs */
    SSL_CTX_free(t->context);
    pthread_mutex_destroy(&t->lock);
    OPENSSL_cleanse(t, sizeof *t);
    leave();
    free(t);
}

static int name_peer(struct tls *t)
{
    X509_VERIFY_PARAM *p = SSL_get0_param(t->ssl);
    if (t->config.server || !t->config.host)
        return 1;
    return X509_VERIFY_PARAM_set1_ip_asc(p, t->config.host) ||
           SSL_set1_host(t->ssl, t->config.host);
}

extern const struct gn_tls_ops gn_tls_module;

static struct gn_tls *start_inside(const struct gn_tls_config *config, int fd, struct gn_error *err)
{
    SSL_CTX *c = context_of(config, err);
    struct tls *t = c ? calloc(1, sizeof *t) : NULL;
    BIO *in = t ? BIO_new_socket(fd, BIO_NOCLOSE) : NULL, *out = t ? BIO_new(BIO_s_mem()) : NULL;
    SSL *ssl = t ? SSL_new(c) : NULL;
    if (!in || !out || !ssl) {
        if (c)
            gn_fail(err, ENOMEM, NULL, "out of memory");
        BIO_free(in);
        BIO_free(out);
        SSL_free(ssl);
        SSL_CTX_free(c);
        free(t);
        return NULL;
    }
    t->base.ops = &gn_tls_module;
    t->config = *config;
    t->has_psk = config->psk != NULL;
    if (t->has_psk)
        t->psk = *config->psk;
    t->config.psk = NULL;
    t->config.context = NULL;
    t->fd = fd;
    t->context = c;
    t->ssl = ssl;
    t->out = out;
    pthread_mutex_init(&t->lock, NULL);
    SSL_set_bio(ssl, in, out);
    SSL_set_app_data(ssl, t);
    if (config->server) {
        SSL_set_psk_find_session_callback(ssl, find_psk);
        SSL_set_accept_state(ssl);
    } else {
        SSL_set_psk_use_session_callback(ssl, offer_psk);
        SSL_set_connect_state(ssl);
    }
    if (!name_peer(t)) {
        gn_fail(err, EINVAL, NULL, "\"%s\" is no name that a certificate could have", config->host);
        tls_free(&t->base);
        return NULL;
    }
    return &t->base;
}

static int ends(struct gn_error *err)
{
    return gn_fail(err, ESHUTDOWN, NULL, "TLS cannot be had: this process is ending");
}

static int start(const struct gn_tls_config *config, int fd, struct gn_tls **ret,
                 struct gn_error *err)
{
    begin();
    if (!enter())
        return ends(err);
    *ret = start_inside(config, fd, err);
    leave();
    return *ret ? 0 : -ENOENT;
}

/* ---- data transfer, with the lock held */

static size_t out_left(struct tls *t)
{
    return (size_t)BIO_ctrl_pending(t->out) - t->out_at;
}

/* Sends buffered ciphertext. 0: all sent; -EAGAIN; another -errno. */
static int drain_before(struct tls *t, bool more)
{
    char *bytes;
    long n = BIO_get_mem_data(t->out, &bytes);
    while (t->out_at < (size_t)n) {
        ssize_t m = send(t->fd, bytes + t->out_at, (size_t)n - t->out_at,
                         MSG_DONTWAIT | MSG_NOSIGNAL | (more ? MSG_MORE : 0));
        if (m < 0 && errno == EINTR)
            continue;
        if (m < 0)
            return -(errno == EWOULDBLOCK ? EAGAIN : errno);
        t->out_at += (size_t)m;
    }
    if (n)
        (void)BIO_reset(t->out);
    t->out_at = 0;
    return 0;
}

static int drain(struct tls *t)
{
    return drain_before(t, false);
}

/* Maps the peer's alert about our certificate, or its absence, to -EKEYREJECTED or -ENOKEY. */
static int refusal_code(void)
{
    switch (ERR_GET_REASON(ERR_peek_last_error())) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        return -ENOKEY;
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
        return -EKEYREJECTED;
    default:
        return -ECONNABORTED;
    }
}

static int code_of(struct tls *t, int rc)
{
    switch (SSL_get_error(t->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
    case SSL_ERROR_WANT_CLIENT_HELLO_CB:
        return -EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return -EPIPE;
    case SSL_ERROR_SYSCALL:
        return errno && errno != EAGAIN ? -errno : -EPIPE;
    default:
        return refusal_code();
    }
}

static int explain(struct tls *t, struct gn_error *err)
{
    long verdict = SSL_get_verify_result(t->ssl);
    int reason_code = ERR_GET_REASON(ERR_peek_last_error());
    /* A server that knows the key does not fall back to a certificate. */
    if (verdict != X509_V_OK && !t->config.server && t->has_psk && !t->config.authority)
        return gn_fail(err, EACCES, "see that GANTRY_TOKEN is the token of one of its tenants",
                       "gantryd does not know this token");
    if (verdict != X509_V_OK)
        return gn_fail(
            err, EACCES,
            t->config.server
                ? NULL
                : "set GANTRY_TLS_CA to the authority that gantryd's certificate is from",
            "the certificate of the other side is refused: %s",
            X509_verify_cert_error_string(verdict));
    if (!t->config.server && !ERR_peek_last_error())
        return gn_fail(err, EACCES, "see that GANTRY_TOKEN is right, and that gantryd serves TLS",
                       "gantryd hung up during the TLS handshake");
    if (!t->config.server)
        return gn_fail(err, EACCES, "see that GANTRY_TOKEN or the certificate is right",
                       "gantryd refuses the TLS handshake: %s", reason());
    if (reason_code == SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM ||
        reason_code == SSL_R_NO_SHARED_CIPHER)
        return gn_fail(err, EACCES, NULL, "it knows no token of ours");
    if (!ERR_peek_last_error())
        return gn_fail(err, EPIPE, NULL, "it hung up during the TLS handshake");
    return gn_fail(err, EACCES, NULL, "the TLS handshake failed: %s", reason());
}

static int handshake(struct gn_tls *base, struct gn_error *err)
{
    struct tls *t = of(base);
    int ret;
    if (!enter())
        return ends(err);
    pthread_mutex_lock(&t->lock);
    ERR_clear_error();
    errno = 0;
    int rc = SSL_do_handshake(t->ssl), code = rc == 1 ? 0 : code_of(t, rc);
    if (code && code != -EAGAIN) {
        ret = explain(t, err);
        (void)drain(t); /* the alert with the reason */
    } else {
        int sent = drain(t);
        ret = sent && sent != -EAGAIN
                  ? gn_fail(err, -sent, NULL, "it hung up during the TLS handshake")
              : t->key == ASKED ? GN_TLS_WANTS_KEY
              : sent            ? GN_TLS_WRITES
              : code            ? GN_TLS_READS
                                : GN_TLS_DONE;
    }
    pthread_mutex_unlock(&t->lock);
    leave();
    return ret;
}

static bool identity(struct gn_tls *base, unsigned char ret[GN_TLS_IDENTITY_BYTES])
{
    struct tls *t = of(base);
    if (!t->proved || !SSL_session_reused(t->ssl))
        return false;
    memcpy(ret, t->proved_identity, sizeof t->proved_identity);
    return true;
}

static void subject(struct gn_tls *base, char *ret, size_t n)
{
    struct tls *t = of(base);
    X509 *x = SSL_get0_peer_certificate(t->ssl);
    ret[0] = 0;
    if (!x ||
        X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, ret, (int)n) >= (int)n)
        ret[0] = 0;
}

/* Up to one TLS record of plaintext, contiguous. */
static const unsigned char *next_record(struct tls *t, const struct iovec *iov, int n, int *at,
                                        size_t *offset, size_t *ret_n)
{
    size_t have = 0;
    if (*at < n && iov[*at].iov_len - *offset >= RECORD) {
        const unsigned char *from = (const unsigned char *)iov[*at].iov_base + *offset;
        *offset += RECORD;
        *ret_n = RECORD;
        if (*offset == iov[*at].iov_len) {
            ++*at;
            *offset = 0;
        }
        return from;
    }
    while (*at < n && have < RECORD) {
        size_t left = iov[*at].iov_len - *offset, m = left < RECORD - have ? left : RECORD - have;
        if (m)
            memcpy(t->record + have, (const char *)iov[*at].iov_base + *offset, m);
        have += m;
        *offset += m;
        if (*offset == iov[*at].iov_len) {
            ++*at;
            *offset = 0;
        }
    }
    *ret_n = have;
    return t->record;
}

static ssize_t tls_send(struct gn_tls *base, const struct iovec *iov, int n, bool more)
{
    struct tls *t = of(base);
    ssize_t taken = 0;
    size_t offset = 0, bytes, written;
    int at = 0;
    if (!enter())
        return -EPIPE;
    pthread_mutex_lock(&t->lock);
    int rc = drain(t);
    while (!rc && at < n) {
        const unsigned char *from = next_record(t, iov, n, &at, &offset, &bytes);
        if (!bytes)
            break;
        ERR_clear_error();
        rc = SSL_write_ex(t->ssl, from, bytes, &written) == 1 ? 0 : code_of(t, 0);
        if (rc)
            break;
        taken += (ssize_t)bytes;
        if (out_left(t) >= OUT_BYTES)
            rc = drain_before(t, more || at < n);
    }
    if (!rc)
        rc = drain_before(t, more);
    pthread_mutex_unlock(&t->lock);
    leave();
    return taken ? taken : rc;
}

static ssize_t tls_recv(struct gn_tls *base, const struct iovec *iov, int n)
{
    struct tls *t = of(base);
    ssize_t got = 0;
    int rc = 0;
    if (!enter())
        return -EPIPE;
    pthread_mutex_lock(&t->lock);
    for (int i = 0; i < n && !rc; i++) {
        for (size_t at = 0; at < iov[i].iov_len && !rc;) {
            size_t m = 0;
            ERR_clear_error();
            errno = 0;
            if (SSL_read_ex(t->ssl, (char *)iov[i].iov_base + at, iov[i].iov_len - at, &m) != 1)
                rc = code_of(t, 0);
            at += m;
            got += (ssize_t)m;
        }
    }
    /* Reading may have produced an alert. */
    if (out_left(t))
        (void)drain(t);
    pthread_mutex_unlock(&t->lock);
    leave();
    return got ? got : rc;
}

static bool has_more(struct gn_tls *base)
{
    struct tls *t = of(base);
    if (!enter())
        return false;
    pthread_mutex_lock(&t->lock);
    bool more = SSL_has_pending(t->ssl);
    pthread_mutex_unlock(&t->lock);
    leave();
    return more;
}

static bool unsent(struct gn_tls *base)
{
    struct tls *t = of(base);
    if (!enter())
        return false;
    pthread_mutex_lock(&t->lock);
    bool left = out_left(t) && drain(t) == -EAGAIN;
    pthread_mutex_unlock(&t->lock);
    leave();
    return left;
}

static int open_context(const struct gn_tls_config *config, struct gn_tls_context **ret,
                        struct gn_error *err)
{
    begin();
    if (!enter())
        return ends(err);
    SSL_CTX *c = new_context(config, err);
    leave();
    *ret = (struct gn_tls_context *)c;
    return c ? 0 : -EINVAL;
}

static void close_context(struct gn_tls_context *context)
{
    if (!enter())
        return;
    SSL_CTX_free((SSL_CTX *)context);
    leave();
}

__attribute__((visibility("default"))) const struct gn_tls_ops gn_tls_module = {
    .version = GN_TLS_MODULE_VERSION,
    .open_context = open_context,
    .close_context = close_context,
    .start = start,
    .handshake = handshake,
    .wanted_key = wanted_key,
    .give_key = give_key,
    .identity = identity,
    .subject = subject,
    .send = tls_send,
    .recv = tls_recv,
    .has_more = has_more,
    .unsent = unsent,
    .free = tls_free,
    .derive = derive,
    .same = same,
};
