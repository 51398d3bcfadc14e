/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_environ.h - variables and a file by which programs that train together find each other
 *
 * Only for kernels of sessions with several. Each names the session's first kernel as the meeting
 * point; the user's own variables of the same name win. Pure.
 *
 *   MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK, LOCAL_RANK, NODE_RANK
 *                       torch.distributed's env:// with one process in each kernel; WORLD_SIZE not
 *                       where the number of kernels changes
 *   PET_...             options of torchrun: as many processes in each kernel as it has devices
 *   TF_CONFIG           TensorFlow. Roles called chief, worker, ps or evaluator are these; then
 *                       "main" is the chief, and "sub" are workers. Without such roles all kernels
 *                       are workers, of which the first leads
 *   JAX_...             jax.distributed.initialize()
 *   OMPI_..., PRTE_...  Open MPI 4 and 5: the host file, the interface, what takes ssh's place
 *   HYDRA_..., I_MPI_HYDRA_...  MPICH and Intel MPI: the same
 *   NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME
 */
#ifndef AQ_AGENT_KERNEL_CLUSTER_ENVIRON_H
#define AQ_AGENT_KERNEL_CLUSTER_ENVIRON_H

#include "base/arena.h"
#include "base/strbuf.h"
#include "base/text_pair.h"
#include "model/cluster_network.h"
#include "model/kernel_spec.h"

#define CLUSTER_VARIABLES_MAX 40

struct cluster_place {
    const char *interface; /* by which other kernels are reached by name; NULL = they are not, "" =
                              that is not known */
    const char *host_file; /* as the program sees it; NULL = none */
    const char *machine_file; /* the same for MPICH and Intel MPI */
    const char *remote_shell; /* what launchers start in place of ssh; NULL = ssh, which is there */
    int64_t devices;          /* accelerators that the program sees */
    const struct cluster_network *host; /* with the host network: ports; NULL = the usual ports */
};

/* Texts are in the arena or constant. Returns how many; 0 for a session of one kernel. */
size_t cluster_environ_make(const struct kernel_spec *spec, const struct cluster_place *place,
                            struct arena *arena, struct text_pair ret[CLUSTER_VARIABLES_MAX]);

/* The host file of MPI: "main1 slots=2", a line for each kernel of the session, or as many as it
 * starts with. With the host network ('host', else NULL) one for each node: MPI takes names with
 * one address for one host.
 */
void cluster_environ_add_hosts(const struct kernel_spec *spec, const struct cluster_network *host,
                               int64_t slots, struct strbuf *out);

/* The same as MPICH and Intel MPI have it: "main1:2". */
void cluster_environ_add_machines(const struct kernel_spec *spec,
                                  const struct cluster_network *host, int64_t slots,
                                  struct strbuf *out);

#endif
