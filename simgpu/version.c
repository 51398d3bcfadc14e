/* SPDX-License-Identifier: Apache-2.0 */
/* version.c - the CUDA version that a simulated library claims; given when it is compiled */
extern const int sim_cuda_version;
const int sim_cuda_version = SIM_CUDA_VERSION;
