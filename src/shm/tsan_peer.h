/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_TSAN_PEER_H
#define GN_SHM_TSAN_PEER_H

/*
 * ThreadSanitizer sees one process. When a thread passes memory to the peer and the peer passes it
 * to another thread of this process, the ordering edge between the two threads runs through the
 * peer and is invisible. These two functions mark its ends. In other builds they do nothing, and in
 * no build do they order anything: the atomics next to them must be correct by themselves. They
 * join writers of one kind only, so that TSan still checks the accesses between the two sides if
 * both are threads.
 */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GN_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define GN_TSAN 1
#endif

#ifdef GN_TSAN
#include <sanitizer/tsan_interface.h>
static inline void gn_tsan_to_peer(void *memory)
{
    __tsan_release(memory);
}
static inline void gn_tsan_from_peer(void *memory)
{
    __tsan_acquire(memory);
}
#else
static inline void gn_tsan_to_peer(void *memory)
{
}
static inline void gn_tsan_from_peer(void *memory)
{
}
#endif

#endif
