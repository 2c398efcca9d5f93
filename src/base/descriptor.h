/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_DESCRIPTOR_H
#define GN_BASE_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct msghdr;

/*
 * Gantry's own descriptors. In a program they have numbers above 2, no matter which numbers are
 * free: a program that was started without stdin, stdout or stderr still prints to those numbers,
 * and its output must not get into a socket or into shared memory. All code that programs load
 * creates its descriptors here (tests/structure checks that). In Gantry's own processes these
 * functions are the plain system calls.
 *
 * The kernel gives a new descriptor the lowest free number. So while one is created, closed numbers
 * among the first three are occupied by descriptors that can neither be read nor written (O_PATH):
 * a thread that prints meanwhile gets EBADF, as before. This takes some microseconds, and only if
 * one of the three is closed.
 *
 * Each function returns a descriptor with FD_CLOEXEC, or -1 and errno. Any thread.
 */

/* Declares that this process is a program. */
void gn_fd_in_program(void);
/* Call around a program's fork(), so that the child does not inherit numbers that are occupied. */
void gn_fd_before_fork(void);
void gn_fd_after_fork(void);
/* Call in the child, which inherits the locks held. May be called twice. */
void gn_fd_after_fork_child(void);

int gn_fd_socket(int domain, int type, int protocol);
int gn_fd_pair(int domain, int type, int ret[static 2]);
int gn_fd_event(int flags);
int gn_fd_timer(int clock, int flags);
int gn_fd_epoll(void);
int gn_fd_memory(const char *name, unsigned flags);
/* Opens an existing file; flags without O_CREAT. */
int gn_fd_open(const char *path, int flags);
int gn_fd_open_at(int folder, const char *path, int flags);
int gn_fd_duplicate(int fd);
/* Calls recvmsg(2) without blocking; received descriptors get numbers above 2, too. */
ssize_t gn_fd_receive(int fd, struct msghdr *msg, int flags);

/* Whether a number among the first three is open in the program. False while it is only occupied by
 * this file. */
bool gn_fd_is_open(int fd);

/* A program may close descriptors that it did not open, as closefrom(3) does, and then get the same
 * numbers for its own files. So in a program each descriptor created here is recorded with its
 * file. */

/* Whether this number still refers to the file that was created here. Checked before each read and
 * write. Files without an inode of their own (eventfd, epoll, timerfd) cannot be told apart. */
bool gn_fd_is_ours(int fd);
/* Returns 0 if it is not ours; otherwise a number that is unique to this descriptor. */
uint64_t gn_fd_serial(int fd);
/* Records a descriptor that another library of the program has created and passed to this one. */
void gn_fd_adopt(int fd);
/* Closes it if it is ours; -1 is ignored. */
void gn_fd_close(int fd);
/* Adds one to an eventfd. Returns false if it is not ours any more. */
bool gn_fd_signal(int fd);
/* Reads the count of an eventfd or a timerfd, if it is ours. */
void gn_fd_drain(int fd);
/* Shuts a socket down in both directions, if it is ours. */
void gn_fd_shutdown(int fd);
/* As dup3(2): `at`, which must still be ours, now refers to fd's file. 0, or -1 and errno. */
int gn_fd_replace(int fd, int at);

#endif
