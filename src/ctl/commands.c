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
    "                  if it is there, or /run/gantry/gantry.sock\n"
#define JSON_HELP "  --json          print one JSON object instead, for programs\n"
#define HELP_HELP "  --help          print this\n"

const struct gn_ctl_command gn_ctl_commands[] = {
    {"run", "[OPTION]... [--] PROGRAM [ARGUMENT]...", "run a program on a vGPU",
     "Runs an OpenCL program, unchanged, with Gantry as its only OpenCL driver. Its\n"
     "output and its exit status are its own.\n"
     "\n"
     "  --tenant T      the tenant that the vGPU belongs to; otherwise $GANTRY_TENANT,\n"
     "                  default, or the only tenant that admits this user\n"
     "  --token-file F  the file with the tenant's token, if it needs one; otherwise\n"
     "                  $GANTRY_TOKEN is the token\n"
     "  --weight N      the vGPU's weight inside its tenant, 1 to 1000000; otherwise 100\n"
     "  --memory SIZE   the vGPU's memory limit inside its tenant: a number with K, M,\n"
     "                  G or T (powers of 1024)\n"
     "  --mode M        who hosts the vGPU: remote, a worker process; passthrough, the\n"
     "                  program itself, for tenants that may; otherwise remote\n" CONNECT_HELP
         HELP_HELP "\n"
     "The program sees no more device memory than the lesser of its own and its tenant's\n"
     "limit; all programs of a tenant together get no more than the tenant's. Where\n"
     "others want the device, too, tenants have it by their weights, and a tenant's vGPUs\n"
     "have its part by theirs.\n"
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
    {"ls", "[OPTION]...", "list the vGPUs: who uses the devices now",
     "Lists the vGPUs, one line each: id, tenant, the program's pid and name, state\n"
     "(running, idle or lost), weight, share of the device of late, device memory held,\n"
     "limit, calls made, and of them those whose program waited for an answer, and the\n"
     "numbers of the devices that it uses (gantry devices). Operators and viewers see all\n"
     "of them, others those of their tenant (GANTRY_TENANT).\n"
     "\n" JSON_HELP CONNECT_HELP HELP_HELP "\n"
     "Examples:\n"
     "  gantry ls\n"
     "  gantry ls --json | jq '.vgpus[] | {id, program, devices}'\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON, 0, gn_ctl_ls},
    {"top", "[OPTION]...", "watch who gets what of the devices",
     "Shows tenants and their vGPUs, once a second: share of the device of late against\n"
     "what they are entitled to, with a bar in which | marks that; device memory and its\n"
     "limit; calls a second, and of them those that were waited for; the part of the\n"
     "time that they had work and another one had the device; device time so far; and\n"
     "their class: interactive (waits for its commands as it goes) or bulk. Above, how\n"
     "busy each device is. A narrow terminal shows less.\n"
     "\n"
     "Keys: q quit, h help, space pause, arrows and page keys scroll, d one device alone.\n"
     "Sort by s share, n name, m memory, c calls, y sync calls, w waiting, t device time;\n"
     "r reverses. Without colours when NO_COLOR is set.\n"
     "\n"
     "  --once          print one frame as plain text, and end: for scripts. The columns\n"
     "                  stand always in the same order, each a word; - is nothing\n"
     "  --delay S       seconds from frame to frame, 0.1 to 3600; otherwise 1. Rates are\n"
     "                  of this time, so --once takes as long\n"
     "  --sort KEY      share, name, memory, calls, sync, wait or time; otherwise share\n" JSON_HELP
         CONNECT_HELP HELP_HELP "\n"
     "Examples:\n"
     "  gantry top\n"
     "  gantry top --once --sort wait\n"
     "  gantry top --once --json | jq '.vgpus[] | {id, calls_per_s, waiting}'\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON | GN_OPTION_TOP, 0, gn_ctl_top},
    {"trace", "-o FILE [OPTION]...", "record whose turn it is, as a timeline",
     "Records, until Ctrl-C or for so long, each turn on a device: who wanted it, had it,\n"
     "was asked for it, gave it back, and what it was charged; and vGPUs that come and go,\n"
     "changes of tenants and of the policy. FILE becomes a timeline that ui.perfetto.dev\n"
     "and chrome://tracing open: a track a device, one a vGPU, and shares as curves. Only\n"
     "operators may trace, one at a time. What comes too fast to be kept is counted.\n"
     "\n"
     "  --output F, -o F  the file to write; - is stdout\n"
     "  --recording       write what gantry sim --trace runs instead: a line a turn\n"
     "  --seconds S       stop after so long, 0.1 to 3600; otherwise at Ctrl-C\n"
     "  --vgpu ID         this one alone: its id, or as much of it as no other has\n" CONNECT_HELP
         HELP_HELP "\n"
     "Examples:\n"
     "  gantry trace -o turns.json --seconds 5\n"
     "  gantry trace -o - --vgpu 5aee | gzip > turns.json.gz\n"
     "  gantry trace -o day.csv --recording --seconds 3600\n",
     GN_OPTION_CONNECT | GN_OPTION_TRACE, 0, gn_ctl_trace},
    {"devices", "[OPTION]...", "list the devices that gantryd offers",
     "Lists the devices that gantryd offers, one line each: number, name, type\n"
     "(cpu-as-gpu: a CPU that programs see as a GPU), compute units, clock, memory,\n"
     "the largest buffer, vGPUs that may use it (of all tenants), platform, the\n"
     "driver's version.\n"
     "\n" JSON_HELP CONNECT_HELP HELP_HELP "\n"
     "Examples:\n"
     "  gantry devices\n"
     "  gantry devices --json | jq -r '.devices[].name'\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON, 0, gn_ctl_devices},
    {"tenant", "add|set NAME [OPTION]... | rm NAME | ls",
     "list tenants, and change what they may have",
     "A tenant is who pays: limits hold for all programs of a tenant together. A program\n"
     "that names none belongs to the tenant default, which is there always, or else to the\n"
     "only tenant that admits its user. A change holds at once, for running programs too,\n"
     "and until gantryd ends; gantry.conf(5) is for what is to last. Only operators may\n"
     "change tenants.\n"
     "\n"
     "  gantry tenant add NAME    make one\n"
     "  gantry tenant set NAME    change what the options say, and nothing else\n"
     "  gantry tenant rm NAME     remove one that has no vGPUs\n"
     "  gantry tenant ls          list them: name, weight, cap, floor, vGPUs, memory used\n"
     "                            and leased, limit, who may attach, modes, devices\n"
     "\n"
     "  --weight N      its weight beside other tenants, 1 to 1000000; otherwise 100\n"
     "  --cap F         never more than this part of a device, even alone: 0.25 or 25%;\n"
     "                  none or 0 for no cap\n"
     "  --floor F       at least this part of a device while it has work; all floors\n"
     "                  together are at most 1. none or 0 for no floor\n"
     "  --memory SIZE   device memory of all its programs together: a number with K, M,\n"
     "                  G or T, or none. Less than is in use stops new allocations\n"
     "  --vgpus N       vGPUs of all its programs at a time, 1 to 1000000; none for as\n"
     "                  many as gantryd has descriptors for beside others'\n"
     "  --uid U         this user may attach: a number or name, any or none; 0 for root's\n"
     "                  programs. May be repeated\n"
     "  --gid G         members of this group may attach; or none. May be repeated\n"
     "  --token-file F  who shows the token in this file may attach; or none\n"
     "  --owner LIST    what the owner of a vGPU may do with it: some of kill, checkpoint,\n"
     "                  restore, migrate (within this gantryd) and mode, or none;\n"
     "                  otherwise kill. May be repeated\n"
     "  --socket        make a socket of its own, for a container: whoever comes by it\n"
     "                  belongs to this tenant. tenant ls --json says where it is\n"
     "  --no-socket     remove it\n"
     "  --mode M        how its programs may be hosted: remote, passthrough. May be\n"
     "                  repeated; otherwise remote\n"
     "  --device D      a device that it may use: NAME-PART[:INDEX], or any. May be\n"
     "                  repeated; otherwise any. Holds for programs that start later\n" JSON_HELP
         CONNECT_HELP HELP_HELP "\n"
     "With set, a repeated option names the whole list anew.\n"
     "\n"
     "Examples:\n"
     "  gantry tenant add blue --memory 4G --uid alice --uid bob\n"
     "  gantry tenant set blue --memory 2G --weight 50 --cap 25%\n"
     "  gantry tenant set default --uid any\n"
     "  gantry tenant ls --json | jq '.tenants[] | {name, memory_bytes}'\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON | GN_OPTION_TENANT | GN_OPTION_ANYWHERE, 2, gn_ctl_tenant},
    {"policy", "[NAME] [OPTION]...", "show or change who gets a device next",
     "Without a name: lists the policies by which devices are shared out, one line each,\n"
     "and says which is in force. With a name: that policy is in force from now on, for\n"
     "running programs too, until gantryd ends. What vGPUs have used stays counted. Only\n"
     "operators may change it.\n"
     "\n" JSON_HELP CONNECT_HELP HELP_HELP "\n"
     "Examples:\n"
     "  gantry policy\n"
     "  gantry policy rr\n"
     "  gantry policy --json | jq -r .policy\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON | GN_OPTION_ANYWHERE, 1, gn_ctl_policy},
    {"migrate", "VGPU local|ADDRESS [OPTION]...",
     "move a running program's vGPU to a new worker, or another gantryd",
     "Moves what a program has on its devices into a new worker process of this gantryd\n"
     "(local), or of the one that listens at ADDRESS, while the program runs: it notices\n"
     "nothing but that it waits for a moment. ADDRESS is unix:PATH for a program of this\n"
     "machine, tcp:HOST:PORT for that and for one that is attached over tcp; it must reach\n"
     "it so, and is attached over tcp from then on, until its vGPU comes to a gantryd of\n"
     "its own machine.\n"
     "VGPU is an id that gantry ls lists, or the beginning of one. If anything fails the\n"
     "program goes on where it was. Only operators may move vGPUs, of both gantryds, but\n"
     "for one that is reached over tcp, where the token of the vGPU's tenant is asked for\n"
     "instead; and the owner of a vGPU, local, where its tenant allows it (gantry tenant).\n"
     "\n"
     "Another gantryd must have a tenant of the same name, devices of the same platform,\n"
     "and memory for it. On a device of another kind its programs are built anew while it\n"
     "runs, and it goes on seeing what it was told of its device. What the other device\n"
     "lacks of what it uses or was told it can rely on is found before anything stops,\n"
     "and the move is refused with the list.\n"
     "\n"
     "What its memory holds is sent while it runs; then it stops, and what has changed\n"
     "since is sent again.\n"
     "\n"
     "  --device NAME      local: go on on another device of this gantryd: NAME-PART or\n"
     "                     NAME-PART:INDEX, as gantry devices lists them; FROM=TO where\n"
     "                     it uses more than one\n"
     "  --rounds N         send N times before the stop, each time what has changed;\n"
     "                     otherwise once\n"
     "  --bandwidth SIZE   send at most SIZE bytes a second before the stop: K, M, G\n"
     "  --stop-and-copy    stop it first, and send everything then\n"
     "  --drain-timeout S  give up when the device's work takes longer than S seconds, or\n"
     "                     when a process that has to answer is stopped for so long;\n"
     "                     otherwise 10\n"
     "  --token-file [TENANT=]FILE  over tcp: the token of its tenant there, or of the\n"
     "                     tenant named; otherwise GANTRY_TOKEN. May be repeated\n"
     "  --link auto|tcp    tcp: its program stays attached over tcp, also where it comes\n"
     "                     back to its own machine; otherwise auto\n"
     "  --quiet            show nothing of how far it is; otherwise a bar on stderr where\n"
     "                     that is a terminal, a line now and then elsewhere\n" JSON_HELP
         CONNECT_HELP HELP_HELP "\n"
     "Not moved yet: over tcp shared virtual memory; pipes, images with mip levels,\n"
     "programs whose program-scope variables may have been written.\n"
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
    {"drain", "ADDRESS|--undo [OPTION]...", "empty this gantryd: all its vGPUs to another one",
     "Takes a gantryd out of service: from now on it refuses new programs, and all its\n"
     "vGPUs are moved to the gantryd that listens at ADDRESS, as gantry migrate does, four\n"
     "at once, while their programs run: unix:PATH for programs of this machine,\n"
     "tcp:HOST:PORT for those and for those that are attached over tcp. What became of\n"
     "each is said in a line. One for which memory is short there is tried again as others\n"
     "end. One that cannot be moved is named with the reason, and goes on where it is: then\n"
     "the exit status is 1. Programs are refused until --undo, or until gantryd ends.\n"
     "Ctrl-C begins no more moves, waits for those under way, and says what has moved. Only\n"
     "operators may, of both gantryds, but for one that is reached over tcp, where each\n"
     "vGPU's tenant is asked for its token instead.\n"
     "\n"
     "  --undo             take in new programs again; what has moved stays there\n"
     "  --rounds N         send what a vGPU's memory holds N times before its stop, each\n"
     "                     time what has changed; otherwise once\n"
     "  --bandwidth SIZE   send at most SIZE bytes a second before the stop, for each\n"
     "                     vGPU: K, M, G\n"
     "  --stop-and-copy    stop each first, and send everything then\n"
     "  --drain-timeout S  give a vGPU up when the device's work takes longer than S\n"
     "                     seconds, or when a process that has to answer is stopped for\n"
     "                     so long; otherwise 10\n"
     "  --token-file [TENANT=]FILE  over tcp: the tenant's token there; without TENANT that\n"
     "                     of all tenants that are not named; otherwise GANTRY_TOKEN. May\n"
     "                     be repeated\n"
     "  --link auto|tcp    tcp: programs stay attached over tcp, also those that come back\n"
     "                     to their own machine; otherwise auto\n"
     "  --quiet            show nothing of how far it is; otherwise a bar on stderr where\n"
     "                     that is a terminal, a line now and then elsewhere\n" JSON_HELP
         CONNECT_HELP HELP_HELP "\n"
     "Not moved yet: what gantry migrate does not move, and programs in passthrough, which\n"
     "gantry mode VGPU remote gives a worker first.\n"
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
     "Ends vGPUs as the loss of their workers does: their programs go on, and get errors\n"
     "(CL_OUT_OF_RESOURCES) from then on; no signal is sent. VGPU is an id that gantry ls\n"
     "lists, or the beginning of one. What became of each is said in a line; where one was\n"
     "not ended the exit status is 1, and the others are. A vGPU in passthrough ends with\n"
     "its program alone. Operators may, and the owner of a vGPU, where its tenant does not\n"
     "say otherwise (gantry tenant --owner).\n"
     "\n"
     "  --tenant T      end all vGPUs of this tenant instead\n"
     "  --reason TEXT   what gantryd's log is to say of it\n" JSON_HELP CONNECT_HELP HELP_HELP "\n"
     "Examples:\n"
     "  gantry kill 1f3a77c0\n"
     "  gantry kill --tenant blue --reason 'maintenance'\n"
     "  gantry kill 1f 2e --json | jq '.kill[] | {id, result}'\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON | GN_OPTION_KILL | GN_OPTION_ANYWHERE, GN_CTL_WORDS,
     gn_ctl_kill},
    {"mode", "VGPU remote|passthrough [OPTION]...", "switch who hosts a running program's vGPU",
     "Moves what a program has on its devices out of the program into a worker process\n"
     "(remote), or out of its worker into the program (passthrough), while the program\n"
     "runs: it notices nothing but that it waits for a moment. VGPU is an id that gantry\n"
     "ls lists, or the beginning of one. If anything fails the program goes on as it was.\n"
     "Its tenant must be allowed the mode. Operators may switch, and the owner of a vGPU\n"
     "where its tenant allows it (gantry tenant --owner).\n"
     "\n"
     "  --rounds N         send what its memory holds N times before the stop, each time\n"
     "                     what has changed; otherwise once\n"
     "  --bandwidth SIZE   send at most SIZE bytes a second before the stop: K, M, G\n"
     "  --stop-and-copy    stop it first, and send everything then\n"
     "  --drain-timeout S  give up when the device's work takes longer than S seconds, or\n"
     "                     when a process that has to answer is stopped for so long;\n"
     "                     otherwise 10\n"
     "  --quiet            show nothing of how far it is; otherwise a bar on stderr where\n"
     "                     that is a terminal, a line now and then elsewhere\n" JSON_HELP
         CONNECT_HELP HELP_HELP "\n"
     "Not switched yet: what gantry migrate does not move.\n"
     "\n"
     "Examples:\n"
     "  gantry mode 1f remote\n"
     "  gantry mode 1f passthrough --json | jq .move.downtime_ns\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON | GN_OPTION_MOVE | GN_OPTION_LIVE | GN_OPTION_ANYWHERE, 2,
     gn_ctl_mode},
    {"checkpoint", "VGPU FILE [OPTION]...", "save a running program's vGPU in a file",
     "Writes what a program has on its devices into FILE, which then is there whole or\n"
     "not at all. The program stands still meanwhile, and goes on. With --stop it does\n"
     "not: its vGPU ends, the program waits, without using the processor, until gantry\n"
     "restore gives it back what is in FILE, also by a gantryd that was started again.\n"
     "VGPU is an id that gantry ls lists, or the beginning of one. If anything fails the\n"
     "program goes on. Operators may save vGPUs, and the owner of one where its tenant\n"
     "allows it (gantry tenant --owner).\n"
     "\n"
     "  --stop             end the vGPU, and let its program wait\n"
     "  --drain-timeout S  give up when the device's work takes longer than S seconds, or\n"
     "                     when a process that has to answer is stopped for so long;\n"
     "                     otherwise 10\n"
     "  --quiet            show nothing of how far it is; otherwise a bar on stderr where\n"
     "                     that is a terminal, a line now and then elsewhere\n" JSON_HELP
         CONNECT_HELP HELP_HELP "\n"
     "A checkpoint without --stop is to look at (gantry inspect): a program that has gone\n"
     "on cannot be taken back. What cannot be moved cannot be saved: gantry help migrate.\n"
     "A program that is attached over tcp cannot be stopped yet; gantry migrate takes it\n"
     "to another gantryd instead.\n"
     "\n"
     "Examples:\n"
     "  gantry checkpoint 1f render.ckpt\n"
     "  gantry checkpoint 1f render.ckpt --stop && gantry restore render.ckpt\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON | GN_OPTION_MOVE | GN_OPTION_STOP | GN_OPTION_ANYWHERE, 2,
     gn_ctl_checkpoint},
    {"restore", "FILE [OPTION]...", "give a stopped program its vGPU back",
     "Makes the vGPU that gantry checkpoint --stop has written into FILE anew in a new\n"
     "worker, for the program that waits for it, which goes on as if nothing had been.\n"
     "Nobody else can be given it, and a program that has gone on is not taken back. If\n"
     "anything fails the program waits on. Operators may restore, and the owner of the\n"
     "vGPU where its tenant allows it (gantry tenant --owner).\n"
     "\n" JSON_HELP CONNECT_HELP HELP_HELP "\n"
     "Examples:\n"
     "  gantry restore render.ckpt\n"
     "  gantry restore render.ckpt --json | jq .restore.phases_ns\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON | GN_OPTION_ANYWHERE, 1, gn_ctl_restore},
    {"sim", "[OPTION]... [FILE]", "try out shares in virtual time, for planning",
     "Runs the scheduler itself, unchanged, in virtual time on programs that FILE or\n"
     "the options describe or that were recorded, and shows what each tenant gets: its\n"
     "share against what it is entitled to, waiting times (from having work to getting\n"
     "the device), how busy devices are, and fairness (the least share over the\n"
     "greatest, each over its entitlement). A kernel runs to its end: where one takes a\n"
     "second, all others wait so long, and their shares fall. No gantryd and no device\n"
     "is needed. The same seed gives the same numbers.\n"
     "\n"
     "  --tenant NAME[:WEIGHT][,KEY=VALUE]...\n"
     "                  a tenant: weight, cap, floor (parts of a device: 25% or 0.25),\n"
     "                  copies (so many tenants alike), and the keys of a program of\n"
     "                  its own. May be repeated\n"
     "  --program NAME,tenant=T[,KEY=VALUE]...\n"
     "                  one more program of a tenant. May be repeated. Its keys:\n"
     "                    vgpus    so many alike; otherwise 1\n"
     "                    weight   of each inside its tenant; otherwise 100\n"
     "                    kernel   how long one runs; otherwise 1ms\n"
     "                    think    until the next launch; otherwise 0, always work\n"
     "                    every    launches on a schedule instead\n"
     "                    burst    kernels a launch; otherwise 1\n"
     "                    arrive   when; otherwise at the start\n"
     "                    stay     how long; otherwise to the end\n"
     "                  A time is 200us, 100us..300us, exp:200us (random with that\n"
     "                  mean) or 20us/20us/5ms (one of them)\n"
     "  --trace F       launches that were recorded: CSV or JSON lines with start_ns,\n"
     "                  vgpu, tenant and kernel_ns\n"
     "  --devices N     1 to 1000; otherwise 1. A vGPU goes to the least loaded\n"
     "  --time T        how long; otherwise 10s, or as long as the recording\n"
     "  --slice T       device time of a turn; otherwise 6ms\n"
     "  --spin T        who has no work keeps the device for this; otherwise 50us\n"
     "  --policy P      fair, credit, credit-hs, strict, rr, xenocredit, some of them\n"
     "                  (fair,rr) or all; several stand side by side. Otherwise fair\n"
     "  --seed N        of what is random; otherwise 1\n"
     "  --cost          also measure what a decision costs as vGPUs become more, in\n"
     "                  nanoseconds of this machine's clock\n" JSON_HELP HELP_HELP "\n"
     "Not modelled: kernels that overlap on a device or are preempted, memory and\n"
     "transfers, the link, and processors (for strict a program asks for the device\n"
     "when it launches). FILE is an INI file of the same keys: gantry-sim(1).\n"
     "\n"
     "Examples:\n"
     "  gantry sim --tenant a:3 --tenant b:1\n"
     "  gantry sim --tenant bulk,kernel=20ms --tenant chat,kernel=200us,think=exp:5ms\n"
     "  gantry sim --policy all --tenant a:100,cap=25% --tenant b:300,vgpus=8\n"
     "  gantry sim --devices 100 --tenant t,copies=1000,vgpus=10,think=exp:20ms\n"
     "  gantry sim lab.sim --slice 2ms --json | jq '.runs[].tenants[] | {name, share}'\n",
     GN_OPTION_JSON | GN_OPTION_SIM | GN_OPTION_ANYWHERE, 1, gn_ctl_sim},
    {"inspect", "[OPTION]... FILE", "show what a checkpoint holds, and check it",
     "Reads a checkpoint of a vGPU, checks every byte of it, and shows what it holds: who\n"
     "wrote it when, the vGPU and its tenant, the devices it ran on, its objects by kind,\n"
     "its buffers (size, pages, those that are zero, what was sent, what that takes in the\n"
     "file), and the commands that were pending. A file that is damaged, cut or of a newer\n"
     "version is refused with one sentence that names the section and its offset. Asks no\n"
     "gantryd and needs no device.\n"
     "\n" JSON_HELP HELP_HELP "\n"
     "Examples:\n"
     "  gantry inspect render.ckpt\n"
     "  gantry inspect --json render.ckpt | jq '.checkpoint.objects[] | {name, count}'\n",
     GN_OPTION_JSON | GN_OPTION_ANYWHERE, 1, gn_ctl_inspect},
    {"doctor", "[OPTION]...", "check the installation and explain what is wrong",
     "Checks gantryd, this installation, the OpenCL loader, the drivers and the kernel.\n"
     "Each finding is a line: ok, warn (it works, but) or fail, and the way out. It\n"
     "changes nothing. The exit status is 1 when something fails.\n"
     "\n"
     "  --strict        fail, too, where programs can load a driver past Gantry\n" JSON_HELP
         CONNECT_HELP HELP_HELP "\n"
     "Examples:\n"
     "  gantry doctor\n"
     "  gantry doctor --connect unix:/tmp/g.sock\n"
     "  gantry doctor --json | jq '.findings[] | select(.status != \"ok\")'\n",
     GN_OPTION_CONNECT | GN_OPTION_JSON | GN_OPTION_STRICT, 0, gn_ctl_doctor},
    {"help", "[COMMAND]", "explain a command",
     "Prints what a command does, its options and examples; without a command, the list\n"
     "of them.\n"
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
           "Operators are those who can open gantryd's control socket, viewers its view socket:\n"
           "gantryd(8). All others see their own tenant.\n"
           "\n"
           "Examples:\n"
           "  gantryd --socket /tmp/g.sock &\n"
           "  export GANTRY_CONNECT=unix:/tmp/g.sock\n"
           "  gantry run -- clinfo -l         a program, unchanged, on a vGPU\n"
           "  gantry ls                       who uses the devices now\n"
           "  gantry top                      and what each gets of them, live\n"
           "  gantry tenant add blue --memory 4G --uid alice\n"
           "  gantry sim --tenant a:3 --tenant b:1    what shares come of it, without a device\n"
           "  gantry doctor                   when something does not work\n"
           "\n"
           "gantry help COMMAND explains a command; so does man gantry-COMMAND.\n");
}
