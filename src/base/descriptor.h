/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_BASE_DESCRIPTOR_H
#define GN_BASE_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct msghdr;

/*
 * Gantry's own descriptors. In a program they lie above 2 whether or not 0 to 2 are open. A program
 * that was started without stdin, stdout or stderr still writes to their numbers, and its output
 * must not get into a socket or into shared memory. All code that programs load makes its
 * descriptors here (tests/structure checks it); in other processes these are the plain system
 * calls.
 *
 * The kernel gives the lowest free number to a new descriptor. So while one is made, placeholders
 * that can be neither read nor written (O_PATH) occupy the closed ones of the first three numbers.
 * A write to such a number fails with EBADF, as before. This takes some microseconds, and only
 * where one of the three is closed.
 *
 * Each function that makes a descriptor returns one with close-on-exec, or -1 and errno. Any
 * thread.
 */

/* Declares that this process is a program. */
void gn_fd_in_program(void);
/* Call these around a program's fork(), so that its child inherits no placeholders. */
void gn_fd_before_fork(void);
void gn_fd_after_fork(void);
/* Call it in the child: it resets the locks, which are locked there. It may be called twice. */
void gn_fd_after_fork_child(void);

int gn_fd_socket(int domain, int type, int protocol);
int gn_fd_pair(int domain, int type, int ret[static 2]);
int gn_fd_event(int flags);
int gn_fd_timer(int clock, int flags);
int gn_fd_epoll(void);
int gn_fd_memory(const char *name, unsigned flags);
/* Opens an existing file; no O_CREAT. */
int gn_fd_open(const char *path, int flags);
int gn_fd_open_at(int folder, const char *path, int flags);
int gn_fd_duplicate(int fd);
/* recvmsg(2) that does not block. Received descriptors are moved above 2 as well. */
ssize_t gn_fd_receive(int fd, struct msghdr *msg, int flags);

/* Is this number, 0 to 2, open in the program? False for a placeholder. */
bool gn_fd_is_open(int fd);

/*
 * A program may close descriptors that it does not know, as closefrom(3) does, and reuse their
 * numbers for its own. So in a program Gantry remembers the file of each descriptor that it made.
 */

/*
 * Does this number still refer to the file that Gantry opened? Checked before each read and write.
 * Files without an inode of their own (eventfd, epoll, timerfd) cannot be told apart.
 */
bool gn_fd_is_ours(int fd);
/* Returns 0 if not; otherwise a number unique to each descriptor that Gantry made. */
uint64_t gn_fd_serial(int fd);
/*
 * Declares a descriptor that another of Gantry's libraries in this program made as this library's.
 */
void gn_fd_adopt(int fd);
/* Closes the descriptor if it is Gantry's. -1: ignored. */
void gn_fd_close(int fd);
/* Adds one to an eventfd. False: it is not Gantry's any more. */
bool gn_fd_signal(int fd);
/* Reads an eventfd's or a timer's count, and so resets it, if it is Gantry's. */
void gn_fd_drain(int fd);
/* Shuts a socket down in both directions, if it is Gantry's. */
void gn_fd_shutdown(int fd);
/*
 * dup3(2): makes `at`, which must still be Gantry's, refer to fd's file. Returns 0, or -1 and
 * errno.
 */
int gn_fd_replace(int fd, int at);

#endif
