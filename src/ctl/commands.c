/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of subcommands and their help texts. The man pages in man/ describe the same options in
 * full; a test compares the two.
 */
#include <stdio.h>
#include <string.h>

#include "ctl/ctl.h"

#define CONNECT_HELP                                                                               \
    "  --connect ADDR  where gantryd listens: unix:PATH or tcp:HOST:PORT.\n"                       \
    "                  Otherwise $GANTRY_CONNECT, $XDG_RUNTIME_DIR/gantry/gantry.sock\n"           \
    "                  if it exists, or /run/gantry/gantry.sock\n"
#define JSON_HELP "  --json          print one JSON object instead, for scripts\n"
#define HELP_HELP "  --help          print this\n"

const struct gn_ctl_command gn_ctl_commands[] = {
    {"run", "[OPTION]... [--] PROGRAM [ARGUMENT]...", "run a program on a vGPU",
     "Runs an OpenCL program, unchanged, with Gantry as its only OpenCL driver. Output,\n"
     "signals and exit status are those of the program.\n"
     "\n"
     "  --tenant T      the tenant that the vGPU belongs to; otherwise $GANTRY_TENANT,\n"
     "                  default, or the only tenant that admits this user\n"
     "  --token-file F  the file with the tenant's token, if it needs one; otherwise\n"
     "                  $GANTRY_TOKEN is the token\n"
     "  --weight N      the vGPU's weight inside its tenant, 1 to 1000000; otherwise 100\n"
     "  --memory SIZE   the vGPU's memory limit inside its tenant: a number with K, M,\n"
     "                  G or T (powers of 1024)\n"
     "  --mode M        the process that has the vGPU: remote, a worker; passthrough, the\n"
     "                  program itself, if its tenant may; otherwise remote\n" CONNECT_HELP
         HELP_HELP "\n"
     "The program sees at most the device memory of its own limit and its tenant's limit,\n"
     "whichever is less; all programs of a tenant together get at most the tenant's limit.\n"
     "While several tenants want a device, they share it by their weights, and the vGPUs of\n"
     "a tenant share its part by theirs.\n"
     "\n"
     "Exit status: the program's; 128 + N as shells count it when signal N ended it;\n"
     "125 when Gantry failed, 126 when the program cannot be run, 127 when it is not\n"
     "found.\n"
     "\n"
     "Examples:\n"
     "  gantry run -- clinfo -l\n"
     "  gantry run --weight 200 --memory 2G -- hashcat -b\n"
     "  gantry run --tenant blue --token-file ~/.blue -- clpeak\n"
     "  gantry run --connect unix:/tmp/g.sock -- clpeak --kernel-latency\n",
     GN_OPTION_CONNECT | GN_OPTION_RUN, -1, gn_ctl_run},
    {"ls", "[OPTION]...", "list the vGPUs that use the devices now",
     "Lists the vGPUs, one line each: id, tenant, the program's pid and name, state\n"
     "(running, idle, moving, stopped or lost), weight, recent share of the device, device\n"
     "memory in use and its limit, calls, synchronous calls, and the numbers of the devices\n"
     "in use (gantry devices). Where gantryd runs with --oversubscribe, RESIDENT is the\n"
     "memory that is on the devices. Operators and viewers see all vGPUs, other users those\n"
     "of their tenant (GANTRY_TENANT).\n"
     "\n" JSON_HELP CONNECT_HELP HELP_HELP "\n"
     "Examples:\n"
     "  gantry ls\n"
     "  gantry ls --json | jq '.vgpus[] | {id, program, devices}'\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON, 0, gn_ctl_ls},
    {"top", "[OPTION]...", "watch the vGPUs' shares of the devices",
     "Shows tenants and their vGPUs, refreshed once a second: recent share of the device\n"
     "and entitlement, with a bar in which | marks the entitlement; device memory and its\n"
     "limit; calls and synchronous calls a second; the part of the time that they had work\n"
     "while another vGPU held the device; device time so far; and their class: interactive\n"
     "(waits for each of its commands) or bulk. Above, the load of each device. A narrow\n"
     "terminal shows fewer columns.\n"
     "\n"
     "Keys: q quit, h help, space pause, arrows and page keys scroll, d one device only.\n"
     "Sort by s share, n name, m memory, c calls, y sync calls, w waiting, t device time;\n"
     "r reverses. Without colours when NO_COLOR is set.\n"
     "\n"
     "  --once          print one frame as plain text and exit, for scripts. The order of\n"
     "                  columns is fixed, each value is one word, - means no value\n"
     "  --delay S       seconds between frames, 0.1 to 3600; otherwise 1. Rates are over\n"
     "                  this time, so --once takes as long\n"
     "  --sort KEY      share, name, memory, calls, sync, wait or time; otherwise share\n" JSON_HELP
         CONNECT_HELP HELP_HELP "\n"
     "Examples:\n"
     "  gantry top\n"
     "  gantry top --once --sort wait\n"
     "  gantry top --once --json | jq '.vgpus[] | {id, calls_per_s, waiting}'\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON | GN_OPTION_TOP, 0, gn_ctl_top},
    {"trace", "-o FILE [OPTION]...", "record the scheduling of devices as a timeline",
     "Records each turn on a device until Ctrl-C, or for --seconds: when a vGPU wanted the\n"
     "device, held it, was asked to yield and yielded, and the time charged; also vGPUs\n"
     "that start and end, and changes of tenants and policy. FILE is a timeline for\n"
     "ui.perfetto.dev and chrome://tracing: a track per device, one per vGPU, and shares as\n"
     "curves. Only operators may trace, one at a time. Events that are lost are counted.\n"
     "\n"
     "  --output F, -o F  the file to write; - is stdout\n"
     "  --recording       write a recording for gantry sim --trace instead: a line per turn\n"
     "  --seconds S       stop after S seconds, 0.1 to 3600; otherwise at Ctrl-C\n"
     "  --vgpu ID         trace only this vGPU: its id or a unique prefix\n" CONNECT_HELP HELP_HELP
     "\n"
     "Examples:\n"
     "  gantry trace -o turns.json --seconds 5\n"
     "  gantry trace -o - --vgpu 5aee | gzip > turns.json.gz\n"
     "  gantry trace -o day.csv --recording --seconds 3600\n",
     GN_OPTION_CONNECT | GN_OPTION_TRACE, 0, gn_ctl_trace},
    {"devices", "[OPTION]...", "list the devices that gantryd offers",
     "Lists the devices that gantryd offers, one line each: number, name, type\n"
     "(cpu-as-gpu: a CPU that programs see as a GPU), compute units, clock, memory,\n"
     "largest buffer, memory on lease, number of vGPUs that may use it (of all tenants),\n"
     "platform, driver version. Where gantryd runs with --oversubscribe also the slots of\n"
     "its memory, free and reserved ones, and the host memory for evicted contents.\n"
     "\n" JSON_HELP CONNECT_HELP HELP_HELP "\n"
     "Examples:\n"
     "  gantry devices\n"
     "  gantry devices --json | jq -r '.devices[].name'\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON, 0, gn_ctl_devices},
    {"tenant", "add|set NAME [OPTION]... | rm NAME | ls", "list tenants and change their settings",
     "A tenant is an account: its limits apply to all its programs together. A program that\n"
     "names no tenant belongs to the tenant default, which always exists, or else to the\n"
     "only tenant that admits its user. A change applies at once, also to running programs,\n"
     "until gantryd ends; gantry.conf(5) has permanent settings. Only operators may change\n"
     "tenants.\n"
     "\n"
     "  gantry tenant add NAME    create a tenant\n"
     "  gantry tenant set NAME    change only the settings that are given\n"
     "  gantry tenant rm NAME     remove a tenant without vGPUs\n"
     "  gantry tenant ls          list them: name, weight, cap, floor, vGPUs, memory used\n"
     "                            and leased, limit, reserve, who may attach, modes,\n"
     "                            devices\n"
     "\n"
     "  --weight N      its weight among tenants, 1 to 1000000; otherwise 100\n"
     "  --cap F         at most this part of a device, even if it is idle: 0.25 or 25%;\n"
     "                  none or 0 for no cap\n"
     "  --floor F       at least this part of a device while it has work; all floors\n"
     "                  together are at most 1. none or 0 for no floor\n"
     "  --memory SIZE   device memory of all its programs together: a number with K, M,\n"
     "                  G or T, or none. Below the present use, allocations fail\n"
     "  --reserve SIZE  memory on each of its devices that other tenants cannot get; all\n"
     "                  reserves together are at most the device's memory. none or 0: none\n"
     "  --vgpus N       vGPUs of all its programs at a time, 1 to 1000000; none for as\n"
     "                  many as gantryd's descriptors allow\n"
     "  --uid U         this user may attach: a number or name, any or none; 0 for root's\n"
     "                  programs. May be repeated\n"
     "  --gid G         members of this group may attach; or none. May be repeated\n"
     "  --token-file F  programs with the token in this file may attach; or none\n"
     "  --owner LIST    commands for the owner of a vGPU: some of kill, checkpoint,\n"
     "                  restore, migrate (within this gantryd) and mode, or none;\n"
     "                  otherwise kill. May be repeated\n"
     "  --socket        create a socket for this tenant, for a container: every program\n"
     "                  that uses it belongs to the tenant. tenant ls --json has its path\n"
     "  --no-socket     remove it\n"
     "  --mode M        allowed modes of its programs: remote, passthrough. May be\n"
     "                  repeated; otherwise remote\n"
     "  --device D      a device that it may use: NAME-PART[:INDEX], or any. May be\n"
     "                  repeated; otherwise any. Applies to programs that start later\n" JSON_HELP
         CONNECT_HELP HELP_HELP "\n"
     "With set, a repeated option replaces the whole list.\n"
     "\n"
     "Examples:\n"
     "  gantry tenant add blue --memory 4G --uid alice --uid bob\n"
     "  gantry tenant set blue --memory 2G --weight 50 --cap 25%\n"
     "  gantry tenant set default --uid any\n"
     "  gantry tenant ls --json | jq '.tenants[] | {name, memory_bytes}'\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON | GN_OPTION_TENANT | GN_OPTION_ANYWHERE, 2, gn_ctl_tenant},
    {"policy", "[NAME] [OPTION]...", "show or change the scheduling policy",
     "Without a name: lists the scheduling policies, one line each, and which is in force.\n"
     "With a name: puts that policy into force, also for running programs, until gantryd\n"
     "ends. The accounts of device time continue. Only operators may change it.\n"
     "\n" JSON_HELP CONNECT_HELP HELP_HELP "\n"
     "Examples:\n"
     "  gantry policy\n"
     "  gantry policy rr\n"
     "  gantry policy --json | jq -r .policy\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON | GN_OPTION_ANYWHERE, 1, gn_ctl_policy},
    {"place", "[NAME] [OPTION]...", "show or change the placement policy of device memory",
     "Where gantryd runs with --oversubscribe, a policy decides which vGPUs' memory makes\n"
     "room on a device for another one's. Without a name: lists the policies, one line\n"
     "each, and which is in force. With a name: puts that policy into force on all devices\n"
     "until gantryd ends; memory stays where it is until its vGPU's next turn. Only\n"
     "operators may change it.\n"
     "\n" JSON_HELP CONNECT_HELP HELP_HELP "\n"
     "Examples:\n"
     "  gantry place\n"
     "  gantry place utilization\n"
     "  gantry place --json | jq -r .place\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON | GN_OPTION_ANYWHERE, 1, gn_ctl_place},
    {"migrate", "VGPU local|ADDRESS [OPTION]...",
     "migrate a running program's vGPU to a new worker or another gantryd",
     "Moves the vGPU of a program into a new worker process of this gantryd (local), or of\n"
     "the gantryd that listens at ADDRESS, while the program runs; it is paused for a\n"
     "moment. ADDRESS is unix:PATH for a program of this machine, or tcp:HOST:PORT for any\n"
     "program that can connect to it. The program is then attached over tcp, until its vGPU\n"
     "moves to a gantryd of its own machine. VGPU is an id of gantry ls or a unique prefix.\n"
     "If anything fails, the program continues where it was. Operators of both gantryds may\n"
     "migrate vGPUs; a gantryd that is reached over tcp asks for the token of the vGPU's\n"
     "tenant instead. The owner of a vGPU may migrate it locally if its tenant allows\n"
     "(gantry tenant).\n"
     "\n"
     "The other gantryd must have a tenant of the same name, devices of the same platform,\n"
     "and enough memory. For a device of another kind, kernels are rebuilt while the\n"
     "program runs, and the program still sees the properties of its first device. If the\n"
     "other device lacks a feature that the program uses or was told of, the migration is\n"
     "refused with the list before anything stops.\n"
     "\n"
     "Memory contents are sent while the program runs; then it stops, and the pages that\n"
     "have changed are sent again.\n"
     "\n"
     "  --device NAME      local: continue on another device of this gantryd: NAME-PART or\n"
     "                     NAME-PART:INDEX of gantry devices; FROM=TO if it uses more than\n"
     "                     one\n"
     "  --rounds N         send changed pages N times before the stop; otherwise once\n"
     "  --bandwidth SIZE   send at most SIZE bytes a second before the stop: K, M, G\n"
     "  --stop-and-copy    stop the program first, then send everything\n"
     "  --drain-timeout S  abort if the device is still busy after S seconds, or if a\n"
     "                     process does not answer for as long; otherwise 10\n"
     "  --token-file [TENANT=]FILE  over tcp: the tenant's token at the other gantryd, or\n"
     "                     the named tenant's; otherwise GANTRY_TOKEN. May be repeated\n"
     "  --link auto|tcp    tcp: keep the program attached over tcp, even if the other\n"
     "                     gantryd runs on its machine; otherwise auto\n"
     "  --quiet            show no progress; otherwise a bar if stderr is a terminal, or an\n"
     "                     occasional line\n" JSON_HELP CONNECT_HELP HELP_HELP "\n"
     "Not supported yet: shared virtual memory over tcp; pipes; images with mip levels;\n"
     "programs with program-scope variables that may have been written.\n"
     "\n"
     "Examples:\n"
     "  gantry migrate 1f local\n"
     "  gantry migrate 1f local --rounds 2 --bandwidth 500M\n"
     "  gantry migrate 1f local --device GeForce:1\n"
     "  gantry migrate 1f unix:/run/other/gantry.sock\n"
     "  gantry migrate 1f tcp:gpu2:7411 --token-file blue.token\n"
     "  gantry migrate 1f3a77c0 local --json | jq .move.downtime_ns\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON | GN_OPTION_MOVE | GN_OPTION_LIVE | GN_OPTION_DEVICE |
         GN_OPTION_AWAY | GN_OPTION_ANYWHERE,
     2, gn_ctl_migrate},
    {"drain", "ADDRESS|--undo [OPTION]...", "migrate all vGPUs to another gantryd",
     "Takes a gantryd out of service: it refuses new programs from now on, and all its\n"
     "vGPUs migrate to the gantryd that listens at ADDRESS, as by gantry migrate, four at a\n"
     "time, while their programs run. ADDRESS is unix:PATH for programs of this machine, or\n"
     "tcp:HOST:PORT for all programs. Prints a line for each vGPU. If the other gantryd\n"
     "lacks memory for a vGPU, it is tried again when other migrations have ended. A vGPU\n"
     "that cannot migrate is reported with the reason, and continues where it is; then the\n"
     "exit status is 1. Programs are refused until --undo, or until gantryd ends. After\n"
     "Ctrl-C no more migrations begin, and the present ones are completed. Only operators\n"
     "of both gantryds may drain; a gantryd that is reached over tcp asks for the token of\n"
     "each vGPU's tenant instead.\n"
     "\n"
     "  --undo             admit new programs again; migrated vGPUs stay where they are\n"
     "  --rounds N         send changed pages N times before the stop; otherwise once\n"
     "  --bandwidth SIZE   send at most SIZE bytes a second before the stop, for each\n"
     "                     vGPU: K, M, G\n"
     "  --stop-and-copy    stop each program first, then send everything\n"
     "  --drain-timeout S  leave a vGPU here if its device is still busy after S seconds,\n"
     "                     or if a process does not answer for as long; otherwise 10\n"
     "  --token-file [TENANT=]FILE  over tcp: the tenant's token at the other gantryd;\n"
     "                     without TENANT, that of all other tenants; otherwise\n"
     "                     GANTRY_TOKEN. May be repeated\n"
     "  --link auto|tcp    tcp: keep programs attached over tcp, even if the other gantryd\n"
     "                     runs on their machine; otherwise auto\n"
     "  --quiet            show no progress; otherwise a bar if stderr is a terminal, or an\n"
     "                     occasional line\n" JSON_HELP CONNECT_HELP HELP_HELP "\n"
     "Not supported yet: programs that gantry migrate does not support, and programs in\n"
     "passthrough; use gantry mode VGPU remote first.\n"
     "\n"
     "Examples:\n"
     "  gantry drain unix:/run/b.sock\n"
     "  gantry drain tcp:gpu2:7411 --token-file blue=blue.token --token-file red=red.token\n"
     "  gantry drain unix:/run/b.sock --json | jq '.drain.vgpus[] | {id, result}'\n"
     "  gantry drain --undo\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON | GN_OPTION_MOVE | GN_OPTION_LIVE | GN_OPTION_UNDO |
         GN_OPTION_AWAY | GN_OPTION_ANYWHERE,
     1, gn_ctl_drain},
    {"kill", "VGPU...|--tenant T [OPTION]...", "end vGPUs",
     "Ends vGPUs, with the same effect as the loss of their workers: their programs\n"
     "continue, and get errors (CL_OUT_OF_RESOURCES) from then on; no signal is sent. VGPU\n"
     "is an id of gantry ls or a unique prefix. Prints a line for each vGPU; if one could\n"
     "not be ended, the exit status is 1. A vGPU in passthrough ends only with its program.\n"
     "Operators may end vGPUs, and so may their owners, unless the tenant forbids it\n"
     "(gantry tenant --owner).\n"
     "\n"
     "  --tenant T      end all vGPUs of this tenant instead\n"
     "  --reason TEXT   a reason for gantryd's log\n" JSON_HELP CONNECT_HELP HELP_HELP "\n"
     "Examples:\n"
     "  gantry kill 1f3a77c0\n"
     "  gantry kill --tenant blue --reason 'maintenance'\n"
     "  gantry kill 1f 2e --json | jq '.kill[] | {id, result}'\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON | GN_OPTION_KILL | GN_OPTION_ANYWHERE, GN_CTL_WORDS,
     gn_ctl_kill},
    {"mode", "VGPU remote|passthrough [OPTION]...",
     "move a running program's vGPU into or out of the program",
     "Moves the vGPU of a program out of the program into a worker process (remote), or out\n"
     "of its worker into the program (passthrough), while the program runs; it is paused\n"
     "for a moment. VGPU is an id of gantry ls or a unique prefix. If anything fails, the\n"
     "program continues as before. Its tenant must be allowed the mode. Operators may\n"
     "change the mode, and so may the owner of a vGPU if its tenant allows (gantry tenant\n"
     "--owner).\n"
     "\n"
     "  --rounds N         send changed pages N times before the stop; otherwise once\n"
     "  --bandwidth SIZE   send at most SIZE bytes a second before the stop: K, M, G\n"
     "  --stop-and-copy    stop the program first, then send everything\n"
     "  --drain-timeout S  abort if the device is still busy after S seconds, or if a\n"
     "                     process does not answer for as long; otherwise 10\n"
     "  --quiet            show no progress; otherwise a bar if stderr is a terminal, or an\n"
     "                     occasional line\n" JSON_HELP CONNECT_HELP HELP_HELP "\n"
     "Not supported yet: programs that gantry migrate does not support.\n"
     "\n"
     "Examples:\n"
     "  gantry mode 1f remote\n"
     "  gantry mode 1f passthrough --json | jq .move.downtime_ns\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON | GN_OPTION_MOVE | GN_OPTION_LIVE | GN_OPTION_ANYWHERE, 2,
     gn_ctl_mode},
    {"checkpoint", "VGPU FILE [OPTION]...", "save a running program's vGPU in a file",
     "Saves the vGPU of a program in FILE, which is written completely or not at all. The\n"
     "program is paused meanwhile, then continues. With --stop its vGPU ends instead, and\n"
     "the program waits, without using the processor, until gantry restore restores the\n"
     "vGPU from FILE, possibly in a restarted gantryd. VGPU is an id of gantry ls or a\n"
     "unique prefix. If anything fails, the program continues. Operators may save vGPUs,\n"
     "and so may the owner of a vGPU if its tenant allows (gantry tenant --owner).\n"
     "\n"
     "  --stop             end the vGPU; its program waits\n"
     "  --drain-timeout S  abort if the device is still busy after S seconds, or if a\n"
     "                     process does not answer for as long; otherwise 10\n"
     "  --quiet            show no progress; otherwise a bar if stderr is a terminal, or an\n"
     "                     occasional line\n" JSON_HELP CONNECT_HELP HELP_HELP "\n"
     "A checkpoint without --stop is only for gantry inspect: a program that has continued\n"
     "cannot be restored. Programs that cannot migrate cannot be saved either: gantry help\n"
     "migrate.\n"
     "\n"
     "Examples:\n"
     "  gantry checkpoint 1f render.ckpt\n"
     "  gantry checkpoint 1f render.ckpt --stop && gantry restore render.ckpt\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON | GN_OPTION_MOVE | GN_OPTION_STOP | GN_OPTION_ANYWHERE, 2,
     gn_ctl_checkpoint},
    {"restore", "FILE [OPTION]...", "restore the vGPU of a stopped program",
     "Restores the vGPU that gantry checkpoint --stop has saved in FILE, in a new worker,\n"
     "for the program that waits for it, which then continues. No other program can use it.\n"
     "If anything fails, the program keeps waiting. Operators may restore vGPUs, and so may\n"
     "the owner of a vGPU if its tenant allows (gantry tenant --owner).\n"
     "\n" JSON_HELP CONNECT_HELP HELP_HELP "\n"
     "Examples:\n"
     "  gantry restore render.ckpt\n"
     "  gantry restore render.ckpt --json | jq .restore.phases_ns\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON | GN_OPTION_ANYWHERE, 1, gn_ctl_restore},
    {"sim", "[OPTION]... [FILE]", "simulate shares in virtual time, for planning",
     "Runs the scheduler, unchanged, in virtual time on programs that FILE or the options\n"
     "describe or that were recorded. Shows for each tenant its share and entitlement, and\n"
     "its waiting times (from having work to getting the device); also the load of devices,\n"
     "and fairness (the least share divided by the greatest, each relative to its\n"
     "entitlement). A kernel runs to its end: if one takes a second, all others wait that\n"
     "long, and their shares fall. Needs no gantryd and no device. The same seed gives the\n"
     "same numbers.\n"
     "\n"
     "  --tenant NAME[:WEIGHT][,KEY=VALUE]...\n"
     "                  a tenant: weight, cap, floor (parts of a device: 25% or 0.25),\n"
     "                  copies (number of identical tenants), reserve (device memory\n"
     "                  that others cannot take), and the keys of its own program.\n"
     "                  May be repeated\n"
     "  --program NAME,tenant=T[,KEY=VALUE]...\n"
     "                  another program of a tenant. May be repeated. Its keys:\n"
     "                    vgpus    number of identical vGPUs; otherwise 1\n"
     "                    weight   of each within its tenant; otherwise 100\n"
     "                    kernel   duration of a kernel; otherwise 1ms\n"
     "                    think    time until the next launch; otherwise 0, always work\n"
     "                    every    launch on a schedule instead\n"
     "                    burst    kernels per launch; otherwise 1\n"
     "                    arrive   start time; otherwise 0\n"
     "                    stay     duration; otherwise to the end\n"
     "                    memory   of a vGPU: 3G; otherwise none\n"
     "                    uses     part of it that kernels name; otherwise 100%\n"
     "                    writes   part of that which they change; otherwise 100%\n"
     "                  A time is 200us, 100us..300us, exp:200us (random with that\n"
     "                  mean) or 20us/20us/5ms (one of them)\n"
     "  --trace F       recorded launches: CSV or JSON lines with start_ns,\n"
     "                  vgpu, tenant and kernel_ns\n"
     "  --devices N     1 to 1000; otherwise 1. A vGPU goes to the least loaded\n"
     "  --time T        simulated time; otherwise 10s, or that of the recording\n"
     "  --slice T       device time of a turn; otherwise 6ms\n"
     "  --spin T        time to keep the device without work; otherwise 50us\n"
     "  --policy P      fair, credit, credit-hs, strict, rr, xenocredit, some of them\n"
     "                  (fair,rr) or all; several are shown side by side. Otherwise fair\n"
     "  --memory SIZE   of a device: simulate memory that vGPUs share by swaps\n"
     "  --slot SIZE     the unit of placement; otherwise 64M, doubled up to 1024 slots\n"
     "  --bus SIZE      that a copy moves a second; otherwise copies take no time\n"
     "  --place P       turn, first-fit, size, utilization, some of them or all; several\n"
     "                  are shown side by side. Otherwise turn\n"
     "  --swap-share P  part of the time that copies may take; otherwise 10%. none: swap\n"
     "                  at each turn\n"
     "  --seed N        of random numbers; otherwise 1\n"
     "  --cost          also measure the cost of a decision for growing numbers of vGPUs,\n"
     "                  in nanoseconds of this machine's clock\n" JSON_HELP HELP_HELP "\n"
     "Not modelled: kernels that overlap on a device or are preempted, transfers other\n"
     "than swaps, the link, and processors (for strict a program asks for the device\n"
     "when it launches). FILE is an INI file of the same keys: gantry-sim(1).\n"
     "\n"
     "Examples:\n"
     "  gantry sim --tenant a:3 --tenant b:1\n"
     "  gantry sim --tenant bulk,kernel=20ms --tenant chat,kernel=200us,think=exp:5ms\n"
     "  gantry sim --policy all --tenant a:100,cap=25% --tenant b:300,vgpus=8\n"
     "  gantry sim --devices 100 --tenant t,copies=1000,vgpus=10,think=exp:20ms\n"
     "  gantry sim --memory 8G --bus 12G --tenant a,memory=3G,copies=4 --time 5min\n"
     "  gantry sim lab.sim --slice 2ms --json | jq '.runs[].tenants[] | {name, share}'\n",
     GN_OPTION_JSON | GN_OPTION_SIM | GN_OPTION_ANYWHERE, 1, gn_ctl_sim},
    {"inspect", "[OPTION]... FILE", "verify a checkpoint and show its contents",
     "Reads and verifies a checkpoint of a vGPU, and shows its contents: creator and date,\n"
     "the vGPU and its tenant, its devices, its objects by kind, its buffers (size, pages,\n"
     "zero pages, bytes sent, bytes in the file), and the pending commands. A file that is\n"
     "damaged, truncated or of a newer version is refused with a message that names the\n"
     "section and its offset. Needs no gantryd and no device.\n"
     "\n" JSON_HELP HELP_HELP "\n"
     "Examples:\n"
     "  gantry inspect render.ckpt\n"
     "  gantry inspect --json render.ckpt | jq '.checkpoint.objects[] | {name, count}'\n",
     GN_OPTION_JSON | GN_OPTION_ANYWHERE, 1, gn_ctl_inspect},
    {"doctor", "[OPTION]...", "check the installation and explain problems",
     "Checks gantryd, this installation, the OpenCL loader, the drivers and the kernel.\n"
     "Prints a line for each finding: ok, warn (works with restrictions) or fail, with\n"
     "advice. Changes nothing. The exit status is 1 if a check fails.\n"
     "\n"
     "  --strict        also fail if programs can load a driver without Gantry\n" JSON_HELP
         CONNECT_HELP HELP_HELP "\n"
     "Examples:\n"
     "  gantry doctor\n"
     "  gantry doctor --connect unix:/tmp/g.sock\n"
     "  gantry doctor --json | jq '.findings[] | select(.status != \"ok\")'\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON | GN_OPTION_STRICT, 0, gn_ctl_doctor},
    {"help", "[COMMAND]", "explain a command",
     "Prints the description, options and examples of a command; without a command, the\n"
     "list of commands.\n"
     "\n" HELP_HELP "\n"
     "Examples:\n"
     "  gantry help\n"
     "  gantry help run\n",
     0, 1, gn_ctl_help},
    {.name = NULL},
};

const struct gn_ctl_command *gn_ctl_find(const char *name)
{
    for (const struct gn_ctl_command *c = gn_ctl_commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

void gn_ctl_print_help(const struct gn_ctl_command *command)
{
    printf("usage: gantry %s %s\n\n%s", command->name, command->synopsis, command->details);
}

void gn_ctl_print_overview(void)
{
    printf("usage: gantry COMMAND [OPTION]...\n"
           "       gantry --help | --version\n"
           "\n"
           "Lets many OpenCL programs share devices. gantryd, the daemon, must be running.\n"
           "\n"
           "Commands:\n");
    for (const struct gn_ctl_command *c = gn_ctl_commands; c->name; c++)
        printf("  %-10s  %s\n", c->name, c->summary);
    printf("\n"
           "  --help          print this\n"
           "  --version       print the version\n"
           "\n"
           "Operators are users that can open gantryd's control socket, viewers those that can\n"
           "open its view socket: gantryd(8). Other users see their own tenant.\n"
           "\n"
           "Examples:\n"
           "  gantryd --socket /tmp/g.sock &\n"
           "  export GANTRY_CONNECT=unix:/tmp/g.sock\n"
           "  gantry run -- clinfo -l         a program, unchanged, on a vGPU\n"
           "  gantry ls                       the vGPUs that use the devices now\n"
           "  gantry top                      and their shares, live\n"
           "  gantry tenant add blue --memory 4G --uid alice\n"
           "  gantry sim --tenant a:3 --tenant b:1    the shares of these tenants, simulated\n"
           "  gantry doctor                   if something does not work\n"
           "\n"
           "gantry help COMMAND explains a command; so does man gantry-COMMAND.\n");
}
