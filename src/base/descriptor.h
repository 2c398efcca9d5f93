/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_DESCRIPTOR_H
#define GN_BASE_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct msghdr;

/*
 * Descriptors of Gantry's own. In somebody else's process they lie above 2, whatever is open there:
 * a program that was started without stdin, stdout or stderr prints to their numbers all the same,
 * and what it prints must not come to a socket or into shared memory. All code that programs load
 * makes descriptors here (tests/structure says so); elsewhere these are the plain system calls.
 *
 * The kernel gives the lowest free number to a new descriptor. So while one is made, the closed
 * ones of the first three are held by descriptors that can neither be read nor written (O_PATH):
 * who prints meets EBADF, as before. It takes some microseconds, and only where one of them is
 * closed.
 *
 * Each returns a descriptor that is closed by exec, or -1 and errno. Any thread.
 */

/* From now on: this process is a program. */
void gn_fd_in_program(void);
/* Around a program's fork(): its child inherits nothing that is held. */
void gn_fd_before_fork(void);
void gn_fd_after_fork(void);
/* In the child, where it inherits them held. It may come twice. */
void gn_fd_after_fork_child(void);

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

/*
 * A program may close descriptors that it does not know, as closefrom(3) does, and have its own
 * under the same numbers then. So in a program each descriptor that was made here is remembered by
 * its file.
 */

/*
 * Does this number still stand for the file that was made here? Asked before each read and write.
 * Files without an inode of their own (eventfd, epoll, timerfd) are not told from each other.
 */
bool gn_fd_is_ours(int fd);
/* 0 if not; otherwise a number of its own for each descriptor that was made here. */
uint64_t gn_fd_serial(int fd);
/* This library uses from now on what another one of the program has made. */
void gn_fd_adopt(int fd);
/* Closes it, if so; -1 is none. */
void gn_fd_close(int fd);
/* Adds one to an eventfd. False: it is not ours any more. */
bool gn_fd_signal(int fd);
/* Takes an eventfd's or a timer's count, if it is ours. */
void gn_fd_drain(int fd);
/* Of a socket, both ways, if it is ours. */
void gn_fd_shutdown(int fd);
/* dup3(2): `at`, which must still be ours, comes to stand for fd's file. 0 or -1 and errno. */
int gn_fd_replace(int fd, int at);

#endif
