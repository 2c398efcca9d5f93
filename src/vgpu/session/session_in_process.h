/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_SESSION_SESSION_IN_PROCESS_H
#define GN_VGPU_SESSION_SESSION_IN_PROCESS_H

/*
 * The thread that has the serving thread's part which no message asks for, until the vGPU ends or
 * another process has it: then it clears up. arg is the vGPU.
 */
void *gn_vgpu_keeper_thread(void *arg);

#endif
