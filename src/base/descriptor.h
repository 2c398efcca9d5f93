/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_DESCRIPTOR_H
#define GN_BASE_DESCRIPTOR_H

#include <stdbool.h>
#include <sys/types.h>

struct msghdr;

/*
 * Descriptors of Gantry's own. In somebody else's process they lie above 2, whatever is open there:
 * a program that was started without stdin, stdout or stderr prints to their numbers all the same,
 * and what it prints must not come to a socket or into shared memory. All code that programs load
 * makes descriptors here (tests/structure says so); elsewhere these are the plain system calls.
 *
 * The kernel gives the lowest free number to a new descriptor. So while one is made, the closed ones
 * of the first three are held by descriptors that can neither be read nor written (O_PATH): who
 * prints meets EBADF, as before. It takes some microseconds, and only where one of them is closed.
 *
 * Each returns a descriptor that is closed by exec, or -1 and errno. Any thread.
 */

/* From now on: this process is a program. */
void gn_fd_in_program(void);
/* Around a program's fork(): its child inherits nothing that is held. */
void gn_fd_before_fork(void);
void gn_fd_after_fork(void);

int gn_fd_socket(int domain, int type, int protocol);
int gn_fd_pair(int domain, int type, int ret[static 2]);
int gn_fd_event(int flags);
int gn_fd_timer(int clock, int flags);
int gn_fd_epoll(void);
int gn_fd_memory(const char *name, unsigned flags);
/* Of a file that is there; without O_CREAT. */
int gn_fd_open(const char *path, int flags);
int gn_fd_open_at(int folder, const char *path, int flags);
int gn_fd_duplicate(int fd);
/* recvmsg(2) that does not wait: what comes along lies above 2, too. */
ssize_t gn_fd_receive(int fd, struct msghdr *msg, int flags);

/* Is one of the first three the program's? Not while it is only held here. */
bool gn_fd_is_open(int fd);

#endif
