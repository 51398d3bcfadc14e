/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of other layers run over simuv: it begins before their main(). */
#include "simuv/simuv.h"

__attribute__((constructor)) static void begin_simulation(void)
{
    simuv_begin(1);
}
