/* SPDX-License-Identifier: Apache-2.0 */
/* proc_tree.c - what the process trees of kernels without containers use */
#include "agent/stat/proc_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/stat/stat_file.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "base/vec.h"

#define DEPTH_MAX 256 /* of a tree that changes while it is read */
#define NOBODY SIZE_MAX

struct proc_tree_process {
    pid_t pid, parent;
    double own_msec, children_msec, bytes;
    size_t program; /* number of; NOBODY */
};

struct proc_tree_program {
    pid_t pid, keeper; /* keeper: its monitor; 0 = its parent is nobody in particular */
    struct proc_use use;
};

struct proc_tree {
    DIR *proc;
    double ticks_per_msec, page_bytes;
    struct proc_tree_process *processes; /* by pid */
    size_t count, cap;
    struct proc_tree_program *programs;
    size_t program_count, program_cap;
};

struct proc_tree *proc_tree_new(const char *root)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/proc", root);
    struct proc_tree *tree = aq_alloc(sizeof(*tree));

    tree->proc = opendir(path);
    tree->ticks_per_msec = (double)sysconf(_SC_CLK_TCK) / 1000;
    tree->page_bytes = (double)sysconf(_SC_PAGESIZE);
    return tree;
}

void proc_tree_free(struct proc_tree *tree)
{
    if (!tree)
        return;
    if (tree->proc)
        (void)closedir(tree->proc);
    free(tree->processes);
    free(tree->programs);
    free(tree);
}

void proc_tree_begin(struct proc_tree *tree)
{
    tree->count = tree->program_count = 0;
}

void proc_tree_add(struct proc_tree *tree, pid_t program)
{
    size_t n = tree->program_count;

    vec_grow(&tree->programs, &tree->program_cap, n + 1, sizeof(*tree->programs));
    tree->programs[n] = (struct proc_tree_program){ .pid = program };
    tree->program_count++;
}

/* ---- reading ---- */

/* "PID (NAME) STATE PPID ..."; the name may hold anything. */
static bool proc_tree_parse(const struct proc_tree *tree, const char *text,
                            struct proc_tree_process *ret)
{
    unsigned long long user, system;
    const char *rest = strrchr(text, ')');
    long long child_user, child_system, pages;

    if (!rest
        || sscanf(rest + 1,
                  " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld %*d %*d"
                  " %*d %*d %*u %*u %lld",
                  &ret->parent, &user, &system, &child_user, &child_system, &pages)
               != 6)
        return false;
    ret->own_msec = (double)(user + system) / tree->ticks_per_msec;
    ret->children_msec = (double)(child_user + child_system) / tree->ticks_per_msec;
    ret->bytes = (double)pages * tree->page_bytes;
    ret->program = NOBODY;
    return true;
}

static void proc_tree_read_process(struct proc_tree *tree, const char *name)
{
    AQ_CLEANUP(aq_closep) int fd = -1;
    char path[64], text[1024];
    struct proc_tree_process *process;

    (void)snprintf(path, sizeof(path), "%.20s/stat", name);
    fd = openat(dirfd(tree->proc), path, O_RDONLY | O_CLOEXEC);
    if (!stat_file_read(fd, text, sizeof(text)))
        return; /* it has ended meanwhile */
    vec_grow(&tree->processes, &tree->cap, tree->count + 1, sizeof(*tree->processes));
    process = &tree->processes[tree->count];
    if (proc_tree_parse(tree, text, process)) {
        process->pid = (pid_t)strtol(name, NULL, 10);
        tree->count++;
    }
}

static int proc_tree_by_pid(const void *a, const void *b)
{
    pid_t left = ((const struct proc_tree_process *)a)->pid,
          right = ((const struct proc_tree_process *)b)->pid;

    return left < right ? -1 : left > right;
}

static struct proc_tree_process *proc_tree_find(const struct proc_tree *tree, pid_t pid)
{
    const struct proc_tree_process key = { .pid = pid };

    return tree->count ? bsearch(&key, tree->processes, tree->count, sizeof(key), proc_tree_by_pid)
                       : NULL;
}

/* ---- whose is whose ---- */

static size_t proc_tree_owner_of(const struct proc_tree *tree,
                                 const struct proc_tree_process *process)
{
    for (int depth = 0; process && depth < DEPTH_MAX; depth++) {
        for (size_t i = 0; i < tree->program_count; i++)
            if (process->pid == tree->programs[i].pid
                || (tree->programs[i].keeper && process->parent == tree->programs[i].keeper))
                return i;
        process = process->parent > 1 ? proc_tree_find(tree, process->parent) : NULL;
    }
    return NOBODY;
}

static void proc_tree_find_keepers(struct proc_tree *tree)
{
    for (size_t i = 0; i < tree->program_count; i++) {
        struct proc_tree_program *program = &tree->programs[i];
        const struct proc_tree_process *process = proc_tree_find(tree, program->pid);
        const struct proc_tree_process *keeper = process && process->parent > 1
                                                     ? proc_tree_find(tree, process->parent)
                                                     : NULL;

        program->use.is_there = process != NULL;
        if (!keeper)
            continue;
        program->keeper = keeper->pid;
        program->use.cpu_msec = keeper->children_msec;
    }
}

void proc_tree_look(struct proc_tree *tree)
{
    const struct dirent *entry;

    if (tree->program_count == 0 || !tree->proc)
        return;
    rewinddir(tree->proc);
    while ((entry = readdir(tree->proc)))
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            proc_tree_read_process(tree, entry->d_name);
    if (tree->count)
        qsort(tree->processes, tree->count, sizeof(*tree->processes), proc_tree_by_pid);
    proc_tree_find_keepers(tree);
    for (size_t i = 0; i < tree->count; i++) {
        struct proc_tree_process *process = &tree->processes[i];

        process->program = proc_tree_owner_of(tree, process);
        if (process->program == NOBODY)
            continue;
        tree->programs[process->program].use.cpu_msec += process->own_msec + process->children_msec;
        tree->programs[process->program].use.memory_bytes += process->bytes;
    }
}

struct proc_use proc_tree_get(const struct proc_tree *tree, size_t number)
{
    return number < tree->program_count ? tree->programs[number].use
                                        : (struct proc_use){ .is_there = false };
}

size_t proc_tree_pids(const struct proc_tree *tree, size_t number, int32_t *pids, size_t max)
{
    size_t count = 0;

    for (size_t i = 0; i < tree->count && count < max; i++)
        if (tree->processes[i].program == number)
            pids[count++] = tree->processes[i].pid;
    return count;
}
