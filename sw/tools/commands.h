// SPDX-License-Identifier: Apache-2.0
// The subcommands of `weft`. Each takes over argc and argv from its own name on and answers the exit status:
// 0 ok, 1 a check failed, 2 bad input. The simulator's are linked in by the build; nothing here knows it.
#pragma once

namespace weft::tools {

int sim_command(int argc, char** argv);     // tb/app
int eval_command(int argc, char** argv);    // tb/app
int comply_command(int argc, char** argv);  // tb/comply
int nmc_command(int argc, char** argv);     // tb/app
int trace_command(int argc, char** argv);

inline constexpr int kOk = 0, kFailed = 1, kBadInput = 2;

}  // namespace weft::tools
