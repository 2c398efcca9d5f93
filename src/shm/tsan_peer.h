/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_SHM_TSAN_PEER_H
#define GN_SHM_TSAN_PEER_H

/*
 * Annotations for ThreadSanitizer, which sees one process. When a thread hands memory to the peer
 * and the peer hands it to another thread of this process, the ordering edge runs through the peer
 * and is invisible; these two functions mark its ends. They do nothing in other builds and order
 * nothing in any build: the adjacent atomics must be right by themselves. Only accesses of the same
 * side are joined, so the order between the two sides stays under test where both are threads.
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
