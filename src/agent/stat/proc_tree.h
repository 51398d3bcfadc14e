/* SPDX-License-Identifier: Apache-2.0 */
/* proc_tree.h - what the process trees of kernels without containers use
 *
 * They have no cgroup: their processes are found by their parents, all
 * kernels' in one walk over /proc. Fields: proc_pid_stat(5).
 */
#ifndef AQ_AGENT_STAT_PROC_TREE_H
#define AQ_AGENT_STAT_PROC_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct proc_tree;

struct proc_use {
    bool is_there;
    double cpu_msec, memory_bytes; /* of children that have ended too; resident */
};

/* 'root' is put before /proc ("" = none). */
struct proc_tree *proc_tree_new(const char *root);
void proc_tree_free(struct proc_tree *tree);

/* Forget the programs, name one after another (each gets the next number from
 * 0 on), then look at them all. Without any nothing is read.
 */
void proc_tree_begin(struct proc_tree *tree);
void proc_tree_add(struct proc_tree *tree, pid_t program);
void proc_tree_look(struct proc_tree *tree);

struct proc_use proc_tree_get(const struct proc_tree *tree, size_t number);
/* The processes of a program, at most 'max': how many. */
size_t proc_tree_pids(const struct proc_tree *tree, size_t number, int32_t *pids, size_t max);

#endif
