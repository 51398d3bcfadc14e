/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations with known results. 'source' names the vector of Backend.AI's
 * own allocator that a row repeats: E/F worked examples, "Issue-85", D/F/X/G/W
 * its unit tests. Where a row differs it says why; the reason is one of
 *   exact:   what was asked for is granted. Backend.AI rounds the parts down
 *            and loses the rest; here whole quanta are distributed, so a
 *            request must be a multiple of the quantum;
 *   clamped: no device beyond its capacity.
 */
#include "scenario.h"

#define E ALLOC_EVENLY
#define F ALLOC_FILL
#define IL ALLOC_INTERLEAVED
#define SN ALLOC_SINGLE_NODE
#define INSUFFICIENT "!insufficient-resource"
#define FRAGMENTED "!fractional-resource-fragmented"
#define MULTIPLE "!not-multiple-of-quantum"
#define ARGUMENT "!invalid-resource-argument"
#define COMBINATION "!invalid-resource-combination"

#define EIGHT "g0=1 g1=1 g2=1 g3=1 g4=1 g5=1 g6=1 g7=1"
#define CPUS8 " cpu/0=1@0 cpu/1=1@0 cpu/2=1@0 cpu/3=1@0 cpu/4=1@1 cpu/5=1@1 cpu/6=1@1 cpu/7=1@1"

/* ---- worked examples: fractional, one node ---- */
static const struct scenario worked[] = {
    { "document 001", "A=1@0 B=1@1 cpu/0=1 cpu/1=1", "0.01", E, IL, NULL, NULL,
      "0.2 => B:0.2; 1.2 => A:0.6 B:0.6; is A:0.6 B:0.8" },
    { "document 001, single node", "A=1@0 B=1@1", "0.1", E, SN, NULL, NULL,
      "0.2 => B:0.2; 1.2 => A:0.6 B:0.6; is A:0.6 B:0.8" },
    { "2.7 A,B E", "A=1 B=1", "0.1", E, IL, NULL, NULL,
      "0.2 => B:0.2; 1.2 => A:0.6 B:0.6; is A:0.6 B:0.8" },
    { "2.7 A,B F", "A=1 B=1", "0.1", F, IL, NULL, NULL,
      "0.2 => A:0.2; 1.2 => A:0.2 B:1; is A:0.4 B:1" },
    { "2.7 A,B,C E; differs from 1.3 on, exact: 0.7 + 0.6, not 0.6 + 0.6", "A=1 B=1 C=1", "0.1", E,
      IL, NULL, NULL,
      "0.5 => C:0.5; 0.5 => C:0.5; 0.3 => B:0.3; 1.3 => A:0.7 B:0.6; is A:0.7 B:0.9 C:1;"
      "0.4 => A:0.3 B:0.1" },
    { "2.7 A..D E 2.5; differs, exact: 0.9 + 0.8 + 0.8, not 0.8 three times", "A=1 B=1 C=1 D=1",
      "0.1", E, IL, NULL, NULL,
      "2.5 => B:0.9 C:0.8 D:0.8; 1.0 => A:1; 0.1 => B:0.1; 0.7 => " INSUFFICIENT },
    { "2.7 A..D F 2.5", "A=1 B=1 C=1 D=1", "0.1", F, IL, NULL, NULL,
      "2.5 => A:1 B:1 C:0.5; 1.0 => D:1; 0.1 => C:0.1; 0.7 => " INSUFFICIENT },
    { "2.7 A..D E 1.2", "A=1 B=1 C=1 D=1", "0.1", E, IL, NULL, NULL,
      "1.2 => C:0.6 D:0.6; 1.2 => A:0.6 B:0.6; 1.2 => B:0.4 C:0.4 D:0.4; 0.4 => A:0.4" },
    { "2.7 A,B,C E 2.0", "A=1 B=1 C=1", "0.1", E, IL, NULL, NULL, "0.5 => C:0.5; 2.0 => A:1 B:1" },
    { "2.7 A=2,B=1 E", "A=2 B=1", "0.1", E, IL, NULL, NULL, "2.5 => A:1.5 B:1" },
    { "2.7 A,B=2.00 E (1 GPU = 2 fGPU)", "A=2 B=2", "0.1", E, IL, NULL, NULL,
      "0.5 => B:0.5; 2.0 => A:2; 1.5 => B:1.5" },
    { "2.7 A,B=1.35 E; differs: 0.1 is short of whole quanta, not no multiple of one",
      "A=1.35 B=1.35", "0.1", E, IL, NULL, NULL,
      "1.3 => B:1.3; 1.3 => A:1.3; 0.1 => " INSUFFICIENT },
    { "2.7 A,B=1.35 E 2.7; differs, exact: 2.6 is all there is", "A=1.35 B=1.35", "0.1", E, IL,
      NULL, NULL, "2.7 => " INSUFFICIENT "; 2.6 => A:1.3 B:1.3" },
    { "2.7 8x1 1.1; differs, exact: 0.6 + 0.5, not 0.5 + 0.5", EIGHT, "0.1", E, IL, NULL, NULL,
      "1.1 => g6:0.6 g7:0.5" },
    { "2.7 8x1 2.2; differs, exact: 3 devices give all, not 4 of 0.5", EIGHT, "0.1", E, IL, NULL,
      NULL, "2.2 => g5:0.8 g6:0.7 g7:0.7" },
    { "2.7 8x1 2.5", EIGHT, "0.1", E, IL, NULL, NULL, "2.5 => g3:0.5 g4:0.5 g5:0.5 g6:0.5 g7:0.5" },
    { "2.7 8x1 3.1; differs, exact: 4 devices give all, not 5 of 0.6", EIGHT, "0.1", E, IL, NULL,
      NULL, "3.1 => g4:0.8 g5:0.8 g6:0.8 g7:0.7" },
    { "2.7 8x1 6", EIGHT, "0.1", E, IL, NULL, NULL, "6 => g2:1 g3:1 g4:1 g5:1 g6:1 g7:1" },
    { "2.7 1.9 on 2; differs, exact: 1.0 + 0.9, so 0.1 is left and not 0.2", "A=1 B=1", "0.1", E,
      IL, NULL, NULL, "1.9 => A:1 B:0.9; 0.2 => " INSUFFICIENT "; 0.1 => B:0.1" },
    { "2.8 1.3 in whole quanta", "A=1 B=1", "0.1", E, IL, NULL, NULL, "1.3 => A:0.7 B:0.6" },
};

static const struct scenario issue_85[] = {
#define I85(n, caps, step)                                       \
    {                                                            \
        "Issue-85 row " n, caps, "0.01", E, IL, NULL, NULL, step \
    }
    I85("1", "d0=0.3 d1=0.2 d2=0.1", "0.1 => d2:0.1"),
    I85("2", "d0=0.3 d1=0.2 d2=0.1", "0.15 => d1:0.15"),
    I85("3", "d0=0.3 d1=0.2 d2=0.1", "0.2 => d1:0.2"),
    I85("4", "d0=0.3 d1=0.2 d2=0.1", "0.3 => d0:0.3"),
    I85("5", "d0=0.3 d1=0.2 d2=0.1", "0.4 => d0:0.2 d1:0.2"),
    I85("6", "d0=0.3 d1=0.2 d2=0.1", "0.5 => d0:0.3 d1:0.2"),
    I85("7", "d0=0.3 d1=0.2 d2=0.1", "0.6 => d0:0.3 d1:0.2 d2:0.1"),
    I85("8", "d0=0.3 d1=0.2 d2=0.1", "0.7 => " INSUFFICIENT),
    I85("9", "d0=0.3 d1=0.3", "0.3 => d1:0.3"),
    I85("10", "d0=0.3 d1=0.3", "0.4 => d0:0.2 d1:0.2"),
    I85("11", "d0=0.3 d1=0.3", "0.5 => d0:0.25 d1:0.25"),
    I85("12", "d0=0.3 d1=0.3", "0.6 => d0:0.3 d1:0.3"),
    I85("13", "d0=0.3 d1=0.3", "0.7 => " INSUFFICIENT),
    I85("14", "d0=0.2 d1=0.2 d2=0.2", "0.2 => d2:0.2"),
    I85("15", "d0=0.2 d1=0.2 d2=0.2", "0.3 => d1:0.15 d2:0.15"),
    I85("16", "d0=0.2 d1=0.2 d2=0.2", "0.4 => d1:0.2 d2:0.2"),
    I85("17", "d0=0.2 d1=0.2 d2=0.2", "0.5 => d0:0.17 d1:0.17 d2:0.16"),
    I85("18", "d0=0.2 d1=0.2 d2=0.2", "0.6 => d0:0.2 d1:0.2 d2:0.2"),
};

static const struct scenario hints[] = {
    { "2.7 hints INTERLEAVED; differs, exact: three equal parts, not 0.7 + 0.7",
      "G0=1@0 G1=1@0 G2=1@1 G3=1@1" CPUS8, "0.1", E, IL, NULL, NULL,
      "x.shares=1.5 cpu=4 => G1:0.5 G2:0.5 G3:0.5 0:1 1:1 4:1 5:1;"
      "x.shares=0.5 cpu=2 => G3:0.5 6:1 7:1; x.shares=1 cpu=2 => G0:1 2:1 3:1" },
    { "2.7 hints INTERLEAVED with 1.4, where nothing is lost", "G0=1@0 G1=1@0 G2=1@1 G3=1@1" CPUS8,
      "0.1", E, IL, NULL, NULL,
      "x.shares=1.4 cpu=4 => G1:0.7 G3:0.7 0:1 1:1 4:1 5:1; x.shares=0.5 cpu=2 => G2:0.5 6:1 7:1;"
      "x.shares=1 cpu=2 => G0:1 2:1 3:1" },
    { "2.7 hints PREFER_SINGLE_NODE; differs, exact: three equal parts, not 0.7 + 0.7",
      "G0=1@0 G1=1@0 G2=1@1 G3=1@1" CPUS8, "0.1", E, SN, NULL, NULL,
      "x.shares=1.5 cpu=4 => G1:0.5 G2:0.5 G3:0.5 0:1 1:1 4:1 5:1;"
      "x.shares=0.5 cpu=2 => G3:0.5 6:1 7:1; x.shares=1 cpu=2 => G0:1 2:1 3:1" },
    { "2.7 hints PREFER_SINGLE_NODE with 1.4, where nothing is lost",
      "G0=1@0 G1=1@0 G2=1@1 G3=1@1" CPUS8, "0.1", E, SN, NULL, NULL,
      "x.shares=1.4 cpu=4 => G2:0.7 G3:0.7 4:1 5:1 6:1 7:1; x.shares=0.5 cpu=2 => G1:0.5 0:1 1:1;"
      "x.shares=1 cpu=2 => G0:1 2:1 3:1" },
    { "2.7 hints FILL INTERLEAVED", "G0=1@0 G1=1@0 G2=1@1 G3=1@1" CPUS8, "0.1", F, IL, NULL, NULL,
      "x.shares=1.5 cpu=4 => G0:1 G2:0.5 0:1 1:1 4:1 5:1" },
    { "2.7 hints NUMA [0,1]", "G0=1@0 G1=1@1", "0.1", E, IL, NULL, NULL,
      "0.2 => G1:0.2; 0.5 => G1:0.5; 0.5 => G0:0.5; 0.4 => G0:0.4; 0.4 => G0:0.1 G1:0.3" },
    { "2.6 the over-allocation INTERLEAVED; differs, clamped", "G0=1@0 G1=1@1 G2=1@0 G3=1@1", "0.1",
      E, IL, NULL, NULL,
      "0.3 => G3:0.3; 0.3 => G3:0.3; 0.9 => G2:0.9; 0.9 => G0:0.9; 1.2 => G1:0.8 G3:0.4" },
    { "2.6 the over-allocation PREFER_SINGLE_NODE; differs, clamped", "G0=1@0 G1=1@1 G2=1@0 G3=1@1",
      "0.1", E, SN, NULL, NULL,
      "0.3 => G3:0.3; 0.3 => G3:0.3; 0.9 => G1:0.9; 0.9 => G2:0.9; 1.2 => G0:0.8 G3:0.4" },
    { "2.9 affinity: a0,a1@0 a2,a3@1",
      "npu.device/a0=1@0 npu.device/a1=1@0 npu.device/a2=1@1"
      " npu.device/a3=1@1",
      NULL, E, SN, NULL, NULL, "npu.device=1 => a0:1; npu.device=2 => a2:1 a3:1" },
    { "2.9 affinity: 3 cpus and a gpu per node, E",
      "npu.device/x0=1@0 npu.device/x1=1@1 npu.device/x2=1@2 npu.device/x3=1@3"
      " cpu/a0=1@0 cpu/a1=1@0 cpu/a2=1@0 cpu/b0=1@1 cpu/b1=1@1 cpu/b2=1@1"
      " cpu/c0=1@2 cpu/c1=1@2 cpu/c2=1@2 cpu/d0=1@3 cpu/d1=1@3 cpu/d2=1@3",
      NULL, E, SN, NULL, "npu.device/x0:1 npu.device/x2:1",
      "npu.device=2 cpu=4 => x1:1 x3:1 b0:1 b1:1 d0:1 d1:1" },
    { "2.9 affinity: 3 cpus and a gpu per node, F",
      "npu.device/x0=1@0 npu.device/x1=1@1 npu.device/x2=1@2 npu.device/x3=1@3"
      " cpu/a0=1@0 cpu/a1=1@0 cpu/a2=1@0 cpu/b0=1@1 cpu/b1=1@1 cpu/b2=1@1"
      " cpu/c0=1@2 cpu/c1=1@2 cpu/c2=1@2 cpu/d0=1@3 cpu/d1=1@3 cpu/d2=1@3",
      NULL, F, SN, NULL, "npu.device/x0:1 npu.device/x2:1",
      "npu.device=2 cpu=4 => x1:1 x3:1 b0:1 b1:1 d0:1 d1:1" },
    { "2.9 FILL: npu1 first, then 1.5 of three gpus on nodes 0,1,2",
      "npu.device/n1=1@1 gpu0=1@0 gpu1=1@1 gpu2=1@2", "0.1", F, IL, NULL, NULL,
      "npu.device=1 x.shares=1.5 => n1:1 gpu1:1 gpu0:0.5" },
    { "the same with EVENLY: the hinted node alone if it can",
      "npu.device/n1=1@1 gpu0=1@0"
      " gpu1=1@1 gpu2=1@2",
      "0.1", E, IL, NULL, NULL, "npu.device=1 x.shares=0.5 => n1:1 gpu1:0.5" },
    { "2.9 9 cpus of 4 units, gpus on nodes 1,2: FILL",
      "g1=1@1 g2=1@2 cpu/0=4@0 cpu/1=4@0 cpu/2=4@0 cpu/3=4@1 cpu/4=4@1 cpu/5=4@1"
      " cpu/6=4@2 cpu/7=4@2 cpu/8=4@2",
      "0.1", F, SN, NULL, NULL, "x.shares=2 cpu=26 => g1:1 g2:1 3:4 4:4 5:4 6:4 7:4 8:4 0:2" },
    { "2.9 9 cpus of 4 units, gpus on nodes 1,2: EVENLY 8/9/9",
      "g1=1@1 g2=1@2 cpu/0=4@0 cpu/1=4@0 cpu/2=4@0 cpu/3=4@1 cpu/4=4@1 cpu/5=4@1"
      " cpu/6=4@2 cpu/7=4@2 cpu/8=4@2",
      "0.1", E, SN, NULL, NULL,
      "x.shares=2 cpu=26 => g1:1 g2:1 3:3 4:3 5:3 6:3 7:3 8:3 0:3 1:3 2:2" },
    { "a kind that is not asked for leaves the hint alone (differs: upstream forgets it)",
      "npu.device/n1=1@1 g0=1@0 g1=1@1 cpu/0=1@0 cpu/1=1@1", "0.1", E, IL, NULL, NULL,
      "npu.device=1 cpu=1 => n1:1 cpu/1:1" },
    { "beyond the hinted node: as declared",
      "npu.device/n0=1@0 cpu/c0=1@0 cpu/c1=1@2 cpu/c2=1@1"
      " cpu/c3=1@2 cpu/c4=1@1",
      NULL, E, IL, NULL, NULL, "npu.device=1 cpu=3 => n0:1 c0:1 c1:1 c2:1" },
    { "single node: fewest nodes before best fit", "a=1@0 b=0.9@0 c=1@1 d=0.9@1", "0.1", E, SN,
      NULL, NULL, "1.8 => c:0.9 d:0.9; 1.8 => a:0.9 b:0.9" },
    { "single node: a node that can serve all comes first",
      "npu.device/a=1@0 npu.device/b=1@1"
      " npu.device/c=1@1 npu.device/d=1@1",
      NULL, E, SN, NULL, "npu.device/d:1", "npu.device=2 => b:1 c:1" },
    { "nodes not known are one node", "a=1@-1 b=1@-1 cpu/0=1@0 cpu/1=1@-1", "0.1", E, IL, NULL,
      NULL, "x.shares=1 cpu=1 => b:1 cpu/1:1" },
};

static const struct scenario discrete[] = {
    { "D1 F", "a0=1 a1=1", NULL, F, IL, NULL, NULL,
      "1 => a0:1; 3 => " INSUFFICIENT "; is a0:1 a1:0; free 1; is a0:0 a1:0" },
    { "D1 E", "a0=1 a1=1", NULL, E, IL, NULL, NULL,
      "1 => a0:1; 3 => " INSUFFICIENT "; is a0:1 a1:0; free 1; is a0:0 a1:0" },
    { "D2 F", "a0=100 a1=100", NULL, F, IL, NULL, NULL,
      "130 => a0:100 a1:30; 71 => " INSUFFICIENT "; is a0:100 a1:30" },
    { "D3 E", "a0=100 a1=100", NULL, E, IL, NULL, NULL,
      "130 => a0:65 a1:65; 15 => a0:8 a1:7; is a0:73 a1:72; 99 => " INSUFFICIENT },
    { "D4 E", "a0=10 a1=10 a2=10", NULL, E, IL, NULL, NULL,
      "7 => a0:3 a1:2 a2:2; 23 => a0:7 a1:8 a2:8; is a0:10 a1:10 a2:10" },
    { "D5 E", "cpu0=2 cpu1=2 cpu2=2 cpu3=2", NULL, E, IL, NULL, NULL,
      "4 => cpu0:1 cpu1:1 cpu2:1 cpu3:1; 2 => cpu0:1 cpu1:1; 3 => " INSUFFICIENT
      "; 2 => cpu2:1 cpu3:1" },
    { "2.3 EVENLY of 1.5; differs: refused, upstream gives 1", "a0=2 a1=2", NULL, E, IL, NULL, NULL,
      "1.5 => " ARGUMENT },
    { "2.3 FILL of 1.5; differs: refused, upstream gives 1 + 0.5", "a0=1 a1=1", NULL, F, IL, NULL,
      NULL, "1.5 => " ARGUMENT },
    { "uneven devices: to one level (differs: 7/5/1 upstream)", "a=10 b=10 c=1", NULL, E, IL, NULL,
      NULL, "13 => a:6 b:6 c:1" },
    { "half a unit of capacity is no unit", "a=1.5", NULL, E, IL, NULL, NULL,
      "2 => " INSUFFICIENT "; 1 => a:1" },
    { "bytes by FILL", "mem/r0=1g mem/r1=1g", NULL, E, IL, NULL, NULL,
      "mem=1536m => r0:1g r1:512m; mem=513m => " INSUFFICIENT " mem; mem=1 => r1:1" },
};

static const struct scenario fraction[] = {
    { "F1", "a0=1 a1=1", "0.01", F, IL, NULL, NULL, "1.5 => a0:1 a1:0.5; 1.5 => " INSUFFICIENT },
    { "F2", "a0=1 a1=1 a2=1 a3=1 a4=1 a5=1 a6=1 a7=1", "0.01", F, IL, NULL, NULL,
      "7.95 => a0:1 a1:1 a2:1 a3:1 a4:1 a5:1 a6:1 a7:0.95; 1.0 => " INSUFFICIENT },
    { "F5 .66", "a0=0.05 a1=0.1 a2=0.2 a3=0.3 a4=0", "0.01", E, IL, NULL, NULL,
      "0.66 => " INSUFFICIENT },
    { "F5 .06 min .6", "a0=0.05 a1=0.1 a2=0.2 a3=0.3 a4=0", "0.01", E, IL, "0.6", NULL,
      "0.06 => " INSUFFICIENT },
    { "F5 20 x .01", "a0=0.05 a1=0.1 a2=0.2 a3=0.3 a4=0", "0.01", E, IL, NULL, NULL,
      "0.01 => a0:0.01; 0.01 => a0:0.01; 0.01 => a0:0.01; 0.01 => a0:0.01; 0.01 => a0:0.01;"
      "0.01 => a1:0.01; 0.01 => a1:0.01; 0.01 => a1:0.01; 0.01 => a1:0.01; 0.01 => a1:0.01;"
      "0.01 => a1:0.01; 0.01 => a1:0.01; 0.01 => a1:0.01; 0.01 => a1:0.01; 0.01 => a1:0.01;"
      "0.01 => a2:0.01; 0.01 => a2:0.01; 0.01 => a2:0.01; 0.01 => a2:0.01; 0.01 => a2:0.01;"
      "is a0:0.05 a1:0.10 a2:0.05" },
    { "F5 .2", "a0=0.05 a1=0.1 a2=0.2 a3=0.3 a4=0", "0.01", E, IL, NULL, NULL, "0.2 => a2:0.2" },
    { "F5 .2 min .25", "a0=0.05 a1=0.1 a2=0.2 a3=0.3 a4=0", "0.01", E, IL, "0.25", NULL,
      "0.2 => a3:0.2" },
    { "F5 .5", "a0=0.05 a1=0.1 a2=0.2 a3=0.3 a4=0", "0.01", E, IL, NULL, NULL,
      "0.5 => a2:0.2 a3:0.3" },
    { "F5 .65", "a0=0.05 a1=0.1 a2=0.2 a3=0.3 a4=0", "0.01", E, IL, NULL, NULL,
      "0.65 => a0:0.05 a1:0.1 a2:0.2 a3:0.3" },
    { "F5 .6 min .1", "a0=0.05 a1=0.1 a2=0.2 a3=0.3 a4=0", "0.01", E, IL, "0.1", NULL,
      "0.6 => a1:0.1 a2:0.2 a3:0.3" },
    { "F5 [.3,.3,.9]", "a0=0.3 a1=0.3 a2=0.9", "0.01", E, IL, NULL, NULL,
      "1 => a0:0.3 a1:0.3 a2:0.4" },
    { "F6 2.31", "a0=0.8 a1=0.75 a2=0.7 a3=0.3 a4=0", "0.01", E, IL, NULL, NULL,
      "2.31 => a0:0.67 a1:0.67 a2:0.67 a3:0.3" },
    { "F6 2", "a0=0.8 a1=0.75 a2=0.7 a3=0.3 a4=0", "0.01", E, IL, NULL, NULL,
      "2 => a0:0.67 a1:0.67 a2:0.66" },
    { "F7", "a0=2 a1=3 a2=3 a3=5", "0.01", E, IL, NULL, NULL, "6 => a1:3 a2:3" },
    { "F8 6", "a0=1 a1=1.5 a2=2 a3=3 a4=3 a5=4 a6=4.5 a7=5 a8=5", "0.01", E, IL, "2.5", NULL,
      "6 => a3:3 a4:3" },
    { "F8 11", "a0=1 a1=1.5 a2=2 a3=3 a4=3 a5=4 a6=4.5 a7=5 a8=5", "0.01", E, IL, "0.84", NULL,
      "11 => a3:2.75 a4:2.75 a5:2.75 a6:2.75" },
    { "F9", "a0=1 a1=1 a2=1 a3=1 a4=1 a5=1 a6=1 a7=1", "0.01", E, IL, NULL, NULL,
      "6 => a2:1 a3:1 a4:1 a5:1 a6:1 a7:1" },
    { "F10 E .5", "a0=1 a1=1", "0.25", E, IL, NULL, NULL, "0.5 => a1:0.5" },
    { "F10 E 1.5", "a0=1 a1=1", "0.25", E, IL, NULL, NULL, "1.5 => a0:0.75 a1:0.75" },
    { "F10 F 1.5", "a0=1 a1=1", "0.25", F, IL, NULL, NULL, "1.5 => a0:1 a1:0.5" },
    { "F10 .24", "a0=1 a1=1", "0.25", E, IL, NULL, NULL, "0.24 => " MULTIPLE },
    { "F10 F .24", "a0=1 a1=1", "0.25", F, IL, NULL, NULL, "0.24 => " MULTIPLE },
    { "F10 E 1.75; differs, exact: not 0.75 + 0.75", "a0=1 a1=1", "0.25", E, IL, NULL, NULL,
      "1.75 => a0:1 a1:0.75" },
    { "F10 F 1.75", "a0=1 a1=1", "0.25", F, IL, NULL, NULL, "1.75 => a0:1 a1:0.75" },
    { "F10 E .52, .42, 3.99; differs, exact: refused, upstream gives .5, .25, nothing", "a0=1 a1=1",
      "0.25", E, IL, NULL, NULL,
      "0.52 => " MULTIPLE "; 0.42 => " MULTIPLE "; 3.99 => " MULTIPLE "; 4 => " INSUFFICIENT },
    { "F10 F .52, .42, 3.99; differs, exact: refused, upstream gives .5, .25, nothing", "a0=1 a1=1",
      "0.25", F, IL, NULL, NULL,
      "0.52 => " MULTIPLE "; 0.42 => " MULTIPLE "; 3.99 => " MULTIPLE "; 4 => " INSUFFICIENT },
    { "F10 F q .3 .5; differs, exact: refused, upstream gives .3", "a0=1 a1=1", "0.3", F, IL, NULL,
      NULL, "0.5 => " MULTIPLE "; 0.3 => a0:0.3" },
};

#define HETERO                                                                                  \
    "cuda.device:1g.5gb-mig/a0=1 cuda.device:1g.5gb-mig/a1=1 cuda.device/a2=1 cuda.device/a3=1" \
    " cuda.device:3g.20gb-mig/a4=1"
#define MIG_SHARES \
    "cuda.device:1g.5gb-mig/a0=1 cuda.device:1g.5gb-mig/a1=1 cuda.shares/a2=1 cuda.shares/a3=1"
#define MIG "cuda.device:1g.5gb-mig"

static const struct scenario exclusive[] = {
    { "X1", HETERO, NULL, E, IL, NULL, NULL,
      "cuda.device=2 " MIG "=1 => " COMBINATION " cuda.device"
      "; cuda.device:3g.20gb-mig=1 " MIG "=1 => " COMBINATION " cuda.device:3g.20gb-mig" },
    { "X2", HETERO, NULL, E, IL, NULL, NULL,
      "cuda.device=3 => " INSUFFICIENT " cuda.device; cuda.device=2 => a2:1 a3:1;" MIG "=0 => ;" MIG
      "=1.1 => " ARGUMENT " " MIG ";" MIG "=2 => " ARGUMENT " " MIG ";" MIG "=1 => a0:1;" MIG
      "=1 => a1:1;" MIG "=1 => " INSUFFICIENT " " MIG },
    { "X3", MIG_SHARES, "0.01", F, IL, NULL, NULL,
      "cuda.shares=2.5 => " INSUFFICIENT " cuda.shares; cuda.shares=2 => a2:1 a3:1;" MIG
      "=0.3 => " ARGUMENT " " MIG ";" MIG "=1.5 => " ARGUMENT " " MIG ";" MIG "=1 => a0:1;" MIG
      "=1 => a1:1;" MIG "=1 => " INSUFFICIENT " " MIG },
    { "2.5 EVENLY splits no unique device (differs: upstream gives .75 + .75)", MIG_SHARES, "0.01",
      E, IL, NULL, NULL, MIG "=1.5 => " ARGUMENT " " MIG ";" MIG "=1 => a0:1" },
    { "a device held under another name is not offered",
      "cuda.shares/g0=1 cuda.shares/g1=1"
      " cuda.device/g0=1 cuda.device/g1=1",
      "0.1", E, IL, NULL, NULL,
      "cuda.shares=0.2 => cuda.shares/g1:0.2; cuda.device=2 => " INSUFFICIENT " cuda.device;"
      "cuda.device=1 => cuda.device/g0:1; cuda.shares=1 => " INSUFFICIENT " cuda.shares;"
      "cuda.shares=0.8 => cuda.shares/g1:0.8; free 1;"
      "cuda.device=1 => " INSUFFICIENT " cuda.device; free 5; cuda.device=1 => cuda.device/g1:1" },
    { "a device held since before a change of mode", "cuda.device/g0=1 cuda.device/g1=1", NULL, E,
      IL, NULL, "cuda.shares/g0:0.5",
      "cuda.device=2 => " INSUFFICIENT " cuda.device; cuda.device=1 => g1:1" },
    { "held beyond a capacity that shrank", "g0=1 g1=1", "0.1", E, IL, NULL, "g0:1.5",
      "2 => " INSUFFICIENT "; 1 => g1:1; 0.1 => " INSUFFICIENT },
    { "held parts that are no multiple of a new quantum", "g0=1", "0.1", E, IL, NULL, "g0:0.25",
      "0.8 => " INSUFFICIENT "; 0.7 => g0:0.7; is g0:0.95" },
    { "unified devices come with every kernel", "npu.all/u0=1 g0=1", "0.1", E, IL, NULL, NULL,
      "0.5 => g0:0.5 u0:0; npu.all=1 => " ARGUMENT " npu.all" },
    { "1.5 unknown slots", "g0=1", "0.1", E, IL, NULL, NULL,
      "x.shares=0.5 tpu.device=0 => g0:0.5; tpu.device=1 => !unsupported-resource tpu.device" },
};

/* 8 GPUs, remaining capacities: the rest is held */
static const struct scenario fragmentation[] = {
    { "G2", EIGHT, "0.1", F, IL, NULL, NULL, "2.5 => g0:1 g1:1 g2:0.5" },
    { "G3 [.5,1,1,1] 1.4 E", "g0=1 g1=1 g2=1 g3=1", "0.1", E, IL, NULL, "g0:0.5",
      "nofrag 1.4 => g2:0.7 g3:0.7" },
    { "G3 [.5,1,1,1] 1.4 F", "g0=1 g1=1 g2=1 g3=1", "0.1", F, IL, NULL, "g0:0.5",
      "nofrag 1.4 => g1:1 g2:0.4" },
    { "G3 [.7,.7,1,1] 2.0 E", "g0=1 g1=1 g2=1 g3=1", "0.1", E, IL, NULL, "g0:0.3 g1:0.3",
      "nofrag 2.0 => g2:1 g3:1" },
    { "G3 [.7,.7,1,1] 2.0 F", "g0=1 g1=1 g2=1 g3=1", "0.1", F, IL, NULL, "g0:0.3 g1:0.3",
      "nofrag 2.0 => g2:1 g3:1" },
    { "G3 [.9,1] 1.4 E", "g0=1 g1=1", "0.1", E, IL, NULL, "g0:0.1", "nofrag 1.4 => g0:0.7 g1:0.7" },
    { "G3 [.9,1] 1.4 F", "g0=1 g1=1", "0.1", F, IL, NULL, "g0:0.1", "nofrag 1.4 => g1:1 g0:0.4" },
    { "G3 [.7,.8] 1.4", "g0=1 g1=1", "0.1", E, IL, NULL, "g0:0.3 g1:0.2",
      "nofrag 1.4 => g0:0.7 g1:0.7" },
    { "G3 [.7,.8] 1.5", "g0=1 g1=1", "0.1", E, IL, NULL, "g0:0.3 g1:0.2",
      "nofrag 1.5 => g0:0.7 g1:0.8" },
    { "G3 [.4,.8,1] 1.6 E", "g0=1 g1=1 g2=1", "0.1", E, IL, NULL, "g0:0.6 g1:0.2",
      "nofrag 1.6 => g1:0.8 g2:0.8" },
    { "G3 [.5,.5,1,1] 1.6 E", "g0=1 g1=1 g2=1 g3=1", "0.1", E, IL, NULL, "g0:0.5 g1:0.5",
      "nofrag 1.6 => g2:0.8 g3:0.8" },
    { "G3 [.5]*4 1.5 E", "g0=1 g1=1 g2=1 g3=1", "0.1", E, IL, NULL, "g0:0.5 g1:0.5 g2:0.5 g3:0.5",
      "nofrag 1.5 => g1:0.5 g2:0.5 g3:0.5" },
    { "G3 [.3]*8 1.8 E", EIGHT, "0.1", E, IL, NULL,
      "g0:0.7 g1:0.7 g2:0.7 g3:0.7 g4:0.7 g5:0.7 g6:0.7 g7:0.7",
      "nofrag 1.8 => g2:0.3 g3:0.3 g4:0.3 g5:0.3 g6:0.3 g7:0.3" },
    { "G3 [.3]*8 1.8 F", EIGHT, "0.1", F, IL, NULL,
      "g0:0.7 g1:0.7 g2:0.7 g3:0.7 g4:0.7 g5:0.7 g6:0.7 g7:0.7",
      "nofrag 1.8 => g0:0.3 g1:0.3 g2:0.3 g3:0.3 g4:0.3 g5:0.3" },
    { "G4 [.5,.5,1,1] 2.8", "g0=1 g1=1 g2=1 g3=1", "0.1", E, IL, NULL, "g0:0.5 g1:0.5",
      "nofrag 2.8 => " FRAGMENTED "; 2.8 => g0:0.5 g1:0.5 g2:0.9 g3:0.9" },
    { "G4 [.8]*4 3.6", "g0=1 g1=1 g2=1 g3=1", "0.1", F, IL, NULL, "g0:0.2 g1:0.2 g2:0.2 g3:0.2",
      "nofrag 3.6 => " FRAGMENTED },
    { "G4 [.2,1] 1.6", "g0=1 g1=1", "0.1", E, IL, NULL, "g0:0.8", "nofrag 1.6 => " FRAGMENTED },
    { "G4 [.2]*4 1.4", "g0=1 g1=1 g2=1 g3=1", "0.1", E, IL, NULL, "g0:0.8 g1:0.8 g2:0.8 g3:0.8",
      "nofrag 1.4 => " FRAGMENTED },
    { "G4 [.3]*8 0.8", EIGHT, "0.1", E, IL, NULL,
      "g0:0.7 g1:0.7 g2:0.7 g3:0.7 g4:0.7 g5:0.7 g6:0.7 g7:0.7", "nofrag 0.8 => " FRAGMENTED },
    { "G4 2 devices 3.0", "g0=1 g1=1", "0.1", E, IL, NULL, NULL, "nofrag 3.0 => " FRAGMENTED },
    { "G4 1 device 1.1", "g0=1", "0.1", F, IL, NULL, NULL, "nofrag 1.1 => " FRAGMENTED },
    { "G5 zero", "g0=1", "0.1", E, IL, NULL, NULL, "nofrag 0 => " },
    { "G5 4 devices 1.0", "g0=1 g1=1 g2=1 g3=1", "0.1", E, IL, NULL, NULL, "nofrag 1 => g3:1" },
    { "G5 4 devices 4.0", "g0=1 g1=1 g2=1 g3=1", "0.1", E, IL, NULL, NULL,
      "nofrag 4 => g0:1 g1:1 g2:1 g3:1" },
    { "G5 single .7", "g0=1", "0.1", E, IL, NULL, NULL, "nofrag 0.7 => g0:0.7" },
    { "G5 shortfall 1.5: .7 and one extra", "g0=1 g1=1", "0.1", E, IL, NULL, NULL,
      "nofrag 1.5 => g0:0.8 g1:0.7" },
    { "G5 shortfall 2.5: .8 and one extra", "g0=1 g1=1 g2=1", "0.1", E, IL, NULL, NULL,
      "nofrag 2.5 => g0:0.9 g1:0.8 g2:0.8" },
    { "G5 shortfall 1.1: .5 and one extra", "g0=1 g1=1", "0.1", E, IL, NULL, NULL,
      "nofrag 1.1 => g0:0.6 g1:0.5" },
    { "G5 shortfall 1.2: .6 and none", "g0=1 g1=1", "0.1", E, IL, NULL, NULL,
      "nofrag 1.2 => g0:0.6 g1:0.6" },
};

static const struct scenario kernels[] = {
    { "W1", "g0=1@0 g1=1@1 cpu/0=1@0 cpu/1=1@0 cpu/2=1@1 cpu/3=1@1 mem/root=4096", "0.1", E, SN,
      NULL, NULL,
      "cpu=1 mem=512 x.shares=0.8 => g1:0.8 cpu/2:1 root:512;"
      "cpu=1 mem=512 x.shares=0.8 => g0:0.8 cpu/0:1 root:512;"
      "nofrag cpu=1 mem=512 x.shares=0.4 => " FRAGMENTED ";"
      "cpu=1 mem=512 x.shares=0.4 => g0:0.2 g1:0.2 cpu/1:1 root:512;"
      "is g0:1 g1:1 cpu/0:1 cpu/1:1 cpu/2:1 cpu/3:0 root:1536" },
    { "W1, the cpus of one node",
      "g0=1@0 g1=1@1 cpu/0=1@0 cpu/1=1@0 cpu/2=1@0 cpu/3=1@0"
      " mem/root=4096",
      "0.1", E, SN, NULL, NULL,
      "cpu=1 mem=512 x.shares=0.8 => g1:0.8 cpu/0:1 root:512;"
      "cpu=1 mem=512 x.shares=0.8 => g0:0.8 cpu/1:1 root:512; is root:1024;"
      "nofrag cpu=1 mem=512 x.shares=0.4 => " FRAGMENTED ";"
      "cpu=1 mem=512 x.shares=0.4 => g0:0.2 g1:0.2 cpu/2:1 root:512; is g0:1 g1:1 root:1536" },
    { "W2", "cpu/0=1 cpu/1=1 mem/root=1024", NULL, E, SN, NULL, NULL,
      "cpu=1 mem=512 => cpu/0:1 root:512; cpu=1 mem=1024 => " INSUFFICIENT " mem;"
      "is cpu/0:1 cpu/1:0 root:512" },
};

static void run_all(const struct scenario *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        scenario_run(&rows[i]);
}

/* ---- devices with a quantum of their own ---- */
static const struct scenario quanta[] = {
    { "the quantum decides on the device", "A=1~0.25 B=1 cuda.device/C=1 cuda.device:1g-mig/m=1",
      "0.1", E, IL, NULL, NULL,
      "0.25 => A:0.25; 0.1 => B:0.1; 0.3 => B:0.3; 0.75 => A:0.75;"
      "cuda.device=1 => cuda.device/C:1; cuda.device:1g-mig=1 => cuda.device:1g-mig/m:1;"
      "is A:1 B:0.4" },
    { "the coarse device first, the fine one when that is full", "A=1 B=1~0.25", "0.05", E, IL,
      NULL, NULL, "0.5 => B:0.5; 0.5 => B:0.5; 0.5 => A:0.5; is A:0.5 B:1" },
    { "parts are of one quantum", "A=1 B=1~0.25 C=1~0.25", "0.1", E, IL, NULL, NULL,
      "1.5 => B:0.75 C:0.75; 1 => A:1; 0.5 => B:0.25 C:0.25; 1 => " INSUFFICIENT },
    { "nothing here divides it", "A=1~0.25 B=1~0.4", "0.1", E, IL, NULL, NULL,
      "0.3 => " MULTIPLE "; 0.4 => B:0.4; 0.5 => A:0.5" },
    { "F; what is released is free again", "A=1~0.5 B=1", "0.1", F, SN, NULL, NULL,
      "1 => A:1; 1 => B:1; free 1; 0.6 => " INSUFFICIENT "; 0.5 => A:0.5" },
    { "held before, more than whole quanta", "A=1~0.25 B=1", "0.1", E, IL, NULL, "A:0.1",
      "0.75 => A:0.75; 0.25 => " INSUFFICIENT "; 0.5 => B:0.5" },
    { "nofrag, one device of either quantum", "A=1~0.25 B=1", "0.1", E, IL, NULL, "A:0.75",
      "nofrag 0.5 => B:0.5; nofrag 0.75 => " FRAGMENTED },
    { "the node of the GPU leads the cores", "A=1~0.25@1 B=1@0 cpu/0=1@0 cpu/4=1@1", "0.1", E, IL,
      NULL, NULL, "x.shares=0.25 cpu=1 => A:0.25 cpu/4:1; x.shares=0.1 cpu=1 => B:0.1 cpu/0:1" },
};

#define RUN(rows)                         \
    static void test_##rows(void **state) \
    {                                     \
        (void)state;                      \
        run_all(rows, AQ_COUNT(rows));    \
    }
RUN(worked)
RUN(issue_85)
RUN(hints)
RUN(discrete)
RUN(fraction)
RUN(exclusive)
RUN(fragmentation)
RUN(quanta)
RUN(kernels)

static int64_t held(const struct alloc_map *map, const char *id)
{
    struct alloc_device_state state;

    for (size_t i = 0; alloc_map_device(map, i, &state); i++)
        if (strcmp(state.id, id) == 0)
            return state.allocated;
    return -1;
}

static int allocate(struct alloc_map *map, const char *slot, int64_t amount, bool forbid,
                    struct alloc_grant *grant)
{
    AQ_CLEANUP(slots_donep) struct slots slots = { 0 };
    struct alloc_request request = { .slots = &slots, .forbid_fragmentation = forbid };

    assert_int_equal(slots_set(&slots, slot, amount), 0);
    return alloc_map_allocate(map, &request, grant, NULL);
}

/* F3: a thousand smallest parts, one released, 499 more released */
static void test_many_small(void **state)
{
    const struct scenario s = { "F3", "a0=1 a1=1", "0.00001", F, IL, NULL, NULL, "" };
    AQ_CLEANUP(alloc_map_freep) struct alloc_map *map = scenario_map(&s);
    static struct alloc_grant grants[1000];
    int64_t before;
    size_t released = 0;

    (void)state;
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(allocate(map, "x.shares", 10, false, &grants[i]), 0);
    assert_int_equal(held(map, "a0"), 5000);
    assert_int_equal(held(map, "a1"), 5000);
    for (size_t i = 0; i < 1000; i++) {
        if (strcmp(grants[i].items[0].device_id, "a0") != 0)
            continue;
        before = held(map, "a0");
        assert_int_equal(alloc_map_release(map, &grants[i], NULL), 0);
        assert_int_equal(held(map, "a0"), before - 10);
        if (released++ == 0)
            assert_int_equal(held(map, "a0"), 4990);
    }
    assert_int_equal(released, 500);
    assert_int_equal(held(map, "a0"), 0);
    for (size_t i = 0; i < 1000; i++)
        alloc_grant_done(&grants[i]);
}

/* 2.9: 144 cores on nodes 0,1,0,1; cores 0-23 and npu0-2 are used */
static void test_144_cores(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf devices = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf busy = STRBUF_INIT;
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant grant = { 0 };
    AQ_CLEANUP(slots_donep) struct slots slots = { 0 };
    AQ_CLEANUP(alloc_map_freep) struct alloc_map *map = NULL;
    struct alloc_request request = { .slots = &slots };
    struct scenario s = { "2.9 144 cores", NULL, NULL, E, SN, NULL, NULL, "" };

    (void)state;
    for (int i = 0; i < 4; i++)
        strbuf_addf(&devices, "npu.device/npu%d=1@%d ", i, i / 2);
    for (int i = 0; i < 144; i++)
        strbuf_addf(&devices, "cpu/%d=1@%d ", i, i / 36 % 2);
    for (int i = 0; i < 3; i++)
        strbuf_addf(&busy, "npu.device/npu%d:1 ", i);
    for (int i = 0; i < 24; i++)
        strbuf_addf(&busy, "cpu/%d:1 ", i);
    s.devices = devices.data;
    s.held = busy.data;
    map = scenario_map(&s);
    assert_int_equal(slots_set(&slots, "npu.device", AMOUNT_ONE), 0);
    assert_int_equal(slots_set(&slots, "cpu", 8 * AMOUNT_ONE), 0);
    assert_int_equal(alloc_map_allocate(map, &request, &grant, NULL), 0);
    assert_int_equal(grant.count, 9);
    assert_string_equal(grant.items[0].device_id, "npu3");
    for (size_t i = 1; i < 9; i++)
        assert_int_equal(atoi(grant.items[i].device_id) / 36 % 2, 1);
}

/* G1: with the guard, 0.1 to 8.0 of 8 devices use as few devices as possible
 * (FILL) and parts of whole quanta that add up (differs, exact).
 */
static void test_densities(void **state)
{
    (void)state;
    for (int strategy = E; strategy <= F; strategy++) {
        const struct scenario s = { "G1", EIGHT, "0.1", (enum alloc_strategy)strategy,
                                    IL,   NULL,  NULL,  "" };

        for (int64_t tenths = 1; tenths <= 80; tenths++) {
            AQ_CLEANUP(alloc_map_freep) struct alloc_map *map = scenario_map(&s);
            AQ_CLEANUP(alloc_grant_donep) struct alloc_grant grant = { 0 };
            size_t least = (size_t)(tenths + 9) / 10;
            int64_t sum = 0;

            assert_int_equal(allocate(map, "x.shares", tenths * 100000, true, &grant), 0);
            assert_true(strategy == F ? grant.count == least : grant.count >= least);
            for (size_t i = 0; i < grant.count; i++) {
                assert_int_equal(grant.items[i].amount % 100000, 0);
                sum += grant.items[i].amount;
            }
            assert_int_equal(sum, tenths * 100000);
        }
    }
}

/* Devices were chosen elsewhere: those, or none. */
static const struct scenario chosen[] = {
    { "another than would have been", "A=1 B=1 C=1", "0.1", E, IL, NULL, "C:0.5",
      "at A:0.4 0.4 => A:0.4; at B:1 1 => B:1; 0.4 => C:0.4; is A:0.4 B:1 C:0.9" },
    { "less is free, though elsewhere there is enough", "A=1 B=1", "0.1", E, IL, NULL, "A:0.7",
      "at A:0.4 0.4 => " INSUFFICIENT "; at A:0.3 0.3 => A:0.3; is A:1 B:0" },
    { "it is not here", "A=1", "0.1", E, IL, NULL, "B:0.5",
      "at B:0.4 0.4 => " INSUFFICIENT "; at x.other/A:0.4 0.4 => A:0.4" },
    { "several, each with its part", "A=1 B=1 C=1 D=1", "0.1", E, IL, NULL, "D:0.5",
      "at B:1,D:0.2 1.2 => B:1 D:0.2; at A:0.5,D:0.5 1 => " INSUFFICIENT
      "; at A:0.5,C:0.4 1 => " ARGUMENT "; at A:0.5,C:0.5 1 => A:0.5 C:0.5;"
      "is A:0.5 B:1 C:0.5 D:0.7" },
    { "several whole ones", "cuda.device/g0=1 cuda.device/g1=1 cuda.device/g2=1", NULL, E, IL, NULL,
      NULL,
      "at cuda.device/g1:1,cuda.device/g2:1 cuda.device=2 => g1:1 g2:1;"
      "at cuda.device/g0:1,cuda.device/g0:1 cuda.device=2 => " INSUFFICIENT " cuda.device" },
    { "it is not split, however it may be", "A=1 B=1", "0.1", F, IL, NULL, NULL,
      "at A:1.2 1.2 => " INSUFFICIENT "; nofrag at A:0.6 0.6 => A:0.6" },
    { "all of it, or it was decided for another request", "A=1", "0.1", E, IL, NULL, NULL,
      "at A:0.3 0.4 => " ARGUMENT "; at A:0.4 0 => " },
    { "quanta of their own", "A=1~0.25 B=1~0.1", "0.1", E, IL, NULL, NULL,
      "at A:0.6 0.6 => " INSUFFICIENT "; at B:0.6 0.6 => B:0.6; at B:0.36 0.36 => " MULTIPLE
      "; at A:0.5 0.5 => A:0.5; at B:0.5 0.5 => " INSUFFICIENT },
    { "one that is left alone", "A=1 B=1", "0.1", E, IL, "0.3", "A:0.8",
      "at A:0.2 0.2 => " INSUFFICIENT "; at B:0.2 0.2 => B:0.2" },
    { "held under another slot's name",
      "cuda.shares/g0=1 cuda.shares/g1=1 cuda.device/g0=1 cuda.device/g1=1", "0.1", E, IL, NULL,
      "cuda.device/g0:1",
      "at cuda.shares/g0:0.5 cuda.shares=0.5 => " INSUFFICIENT " cuda.shares;"
      "at cuda.shares/g1:0.5 cuda.shares=0.5 => cuda.shares/g1:0.5;"
      "at cuda.device/g1:1 cuda.device=1 => " INSUFFICIENT " cuda.device" },
    { "cores of its node, and devices that nobody chose", "G0=1@0 G1=1@1 npu.device/n0=1" CPUS8,
      "0.1", E, IL, NULL, NULL,
      "at G0:0.5 x.shares=0.5 cpu=2 => G0:0.5 0:1 1:1;"
      "at G1:0.5 x.shares=0.5 cpu=1 npu.device=1 => G1:0.5 n0:1 4:1" },
    { "a slice", "cuda.device:1g-mig/m0=1 cuda.device:1g-mig/m1=1", NULL, E, IL, NULL, NULL,
      "at cuda.device:1g-mig/m1:1 cuda.device:1g-mig=1 => m1:1;"
      "at cuda.device:1g-mig/m1:1 cuda.device:1g-mig=1 => " INSUFFICIENT " cuda.device:1g-mig" },
    { "what all share is beside it", "A=1 B=1 npu.all/u=1", "0.1", E, IL, NULL, NULL,
      "at A:0.5 0.5 => A:0.5 u:0" },
};

static void test_chosen(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(chosen); i++)
        scenario_run(&chosen[i]);
}

/* What is held becomes more or less, on the devices that it is of. */
static const struct scenario resized[] = {
    { "one device: more, less, all of it, no more", "A=1 B=1", "0.1", E, IL, NULL, NULL,
      "0.5 => B:0.5; to 1 0.8 => B:0.8; to 1 0.2 => B:0.2; to 1 1 => B:1; is A:0 B:1;"
      "to 1 1.1 => " INSUFFICIENT "; to 1 0 => " ARGUMENT "; to 1 0.25 => " MULTIPLE },
    { "one device stays one, whatever is free beside it", "A=1 B=1", "0.1", E, IL, NULL, "B:0.3",
      "0.2 => B:0.2; to 1 0.7 => B:0.7; to 1 0.8 => " INSUFFICIENT "; is A:0 B:1" },
    { "1.2 of two devices stays even", "A=1 B=1", "0.1", E, IL, NULL, NULL,
      "1.2 => A:0.6 B:0.6; to 1 1.8 => A:0.9 B:0.9; to 1 0.4 => A:0.2 B:0.2; to 1 2 => A:1 B:1;"
      "to 1 2.1 => " INSUFFICIENT "; is A:1 B:1" },
    { "what remains goes to the one with more room", "A=1 B=1", "0.1", E, IL, NULL, "A:0.2",
      "1.2 => A:0.6 B:0.6; to 1 1.3 => A:0.6 B:0.7; to 1 1.7 => A:0.8 B:0.9;"
      "to 1 1.8 => A:0.8 B:1; to 1 1.9 => " INSUFFICIENT },
    { "equal room: to the first", "A=1 B=1", "0.1", E, IL, NULL, NULL,
      "1.2 => A:0.6 B:0.6; to 1 1.3 => A:0.7 B:0.6" },
    { "each device keeps a part", "A=1 B=1", "0.1", E, IL, NULL, NULL,
      "1.2 => A:0.6 B:0.6; to 1 0.2 => A:0.1 B:0.1; to 1 0.1 => " ARGUMENT },
    { "uneven because it had to be; even once it can be", "A=1 B=1", "0.1", E, IL, NULL, "A:0.7",
      "1.2 => A:0.3 B:0.9; to 1 1.1 => A:0.3 B:0.8; to 1 0.6 => A:0.3 B:0.3" },
    { "a third device is left alone", "A=1 B=1 C=1", "0.1", E, IL, NULL, "A:0.6",
      "1.2 => B:0.6 C:0.6; to 1 2 => B:1 C:1; to 1 2.1 => " INSUFFICIENT "; is A:0.6" },
    { "FILL: the one with most room first", "A=1 B=1", "0.1", F, IL, NULL, "A:0.2",
      "1.2 => A:0.2 B:1; to 1 1.5 => A:0.5 B:1; to 1 0.6 => A:0.1 B:0.5; to 1 0.1 => " ARGUMENT },
    { "a finer quantum", "A=1 B=1", "0.01", E, IL, NULL, NULL,
      "1.25 => A:0.63 B:0.62; to 1 1.33 => A:0.67 B:0.66; to 1 1.331 => " MULTIPLE },
    { "quanta of their own", "A=1~0.25 B=1~0.1", "0.1", E, IL, NULL, NULL,
      "x.shares=0.5 => A:0.5; to 1 0.75 => A:0.75; to 1 0.6 => " MULTIPLE },
    { "other kinds stay as they are", "A=1 cpu/0=1 cpu/1=1", "0.1", E, IL, NULL, NULL,
      "x.shares=0.5 cpu=1 => A:0.5 cpu/0:1; to 1 x.shares=0.6 cpu=1 => A:0.6 cpu/0:1;"
      "to 1 x.shares=0.6 cpu=2 => " ARGUMENT " cpu; to 1 x.shares=0.6 => " ARGUMENT " cpu;"
      "to 1 x.shares=0.6 cpu=1 npu.device=1 => " ARGUMENT " npu.device" },
    { "a device that has shrunk: less is fine, more is not", "A=1", "0.1", E, IL, NULL, "A:0.9",
      "0.1 => A:0.1; to 1 0.2 => " INSUFFICIENT "; free 1" },
};

static void test_resized(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(resized); i++)
        scenario_run(&resized[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worked),        cmocka_unit_test(test_issue_85),
        cmocka_unit_test(test_hints),         cmocka_unit_test(test_discrete),
        cmocka_unit_test(test_fraction),      cmocka_unit_test(test_exclusive),
        cmocka_unit_test(test_fragmentation), cmocka_unit_test(test_quanta),
        cmocka_unit_test(test_kernels),       cmocka_unit_test(test_many_small),
        cmocka_unit_test(test_144_cores),     cmocka_unit_test(test_densities),
        cmocka_unit_test(test_chosen),        cmocka_unit_test(test_resized),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
