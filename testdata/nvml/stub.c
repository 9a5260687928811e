/*
 * A stand-in for libnvidia-ml.so.1, for tests on machines without a GPU.
 *
 *   cc -shared -fPIC -o libnvidia-ml.so.1 stub.c          a current library
 *   cc -shared -fPIC -DOLD -o libnvidia-ml.so.1 stub.c    an old one: several functions are missing
 *
 * WHYHANG_STUB_NVML says what it plays, as key=value pairs separated by ';':
 *
 *   gpus=8            number of GPUs
 *   total_gb=96       memory of each, in GiB
 *   used_gb=76        of that allocated, in GiB (another 0.5 GiB is reserved)
 *   util=0            GPU and memory utilisation in percent
 *   power=45          watts; limit=600 is the enforced limit
 *   clock_reasons=1   bits of nvmlClocksEventReasons
 *   name=...          product name
 *   pids=1,2          compute processes of every GPU; pid_memory=none: without their memory
 *   driver=notloaded  nvmlInit_v2 says that there is no driver
 *   lost=3            GPU 3 has no handle any more
 *   hang=CALL         blocks for ever in that call; hang=CALL:3 in the third one
 *   crash=CALL        segmentation fault in that call; likewise
 *   fail=CALL:CODE    that call returns that code; several separated by ','
 *   slow=CALL:MS      that call takes that many milliseconds
 *
 * CALL is a function as this library exports it; CALL@3 means only for GPU 3.
 * The layout of the structures is the ABI of NVML 11 and later.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OK = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9, FUNCTION_NOT_FOUND = 13, GPU_IS_LOST = 15, OPERATING_SYSTEM = 17,
    LIB_RM_VERSION_MISMATCH = 18, ARGUMENT_VERSION_MISMATCH = 25, UNKNOWN = 999
};

enum { MAX_GPUS = 64 };
static int indices[MAX_GPUS]; /* a device handle points at its index */

/* option copies the value of key, or fallback, into out. */
static const char *option(const char *key, const char *fallback, char *out, size_t size)
{
    const char *p = getenv("WHYHANG_STUB_NVML");
    size_t n = strlen(key);
    snprintf(out, size, "%s", fallback);
    while (p && *p) {
        const char *end = strchr(p, ';');
        size_t length = end ? (size_t)(end - p) : strlen(p);
        if (length > n && !strncmp(p, key, n) && p[n] == '=')
            snprintf(out, size, "%.*s", (int)(length - n - 1), p + n + 1);
        p = end ? end + 1 : NULL;
    }
    return out;
}

static double number(const char *key, double fallback)
{
    char value[64];
    option(key, "", value, sizeof value);
    return *value ? atof(value) : fallback;
}

/* names says whether item, CALL or CALL@GPU with an optional :NUMBER behind it,
 * is about this call; the number goes to *argument. */
static int names(const char *item, const char *call, int gpu, int *argument)
{
    size_t n = strlen(call);
    if (strncmp(item, call, n))
        return 0;
    item += n;
    if (*item == '@') {
        char *end;
        if (strtol(item + 1, &end, 10) != gpu)
            return 0;
        item = end;
    }
    if (*item == ':')
        *argument = atoi(item + 1);
    return *item == ':' || *item == 0;
}

/* enter plays what is to happen in a call; gpu is -1 for calls about none. */
static int enter(const char *call, int gpu)
{
    static int hangs, crashes;
    char value[512], *rest, *item;
    int argument = 0;
    if (names(option("hang", "", value, sizeof value), call, gpu, &argument) && ++hangs >= argument)
        for (;;)
            pause();
    argument = 0;
    if (names(option("crash", "", value, sizeof value), call, gpu, &argument) && ++crashes >= argument)
        *(volatile int *)0 = 0;
    if (names(option("slow", "", value, sizeof value), call, gpu, &argument))
        usleep((useconds_t)argument * 1000);
    option("fail", "", value, sizeof value);
    for (item = strtok_r(value, ",", &rest); item; item = strtok_r(NULL, ",", &rest))
        if (names(item, call, gpu, &argument))
            return argument;
    return OK;
}

static int init(const char *call)
{
    char value[32];
    int i, r = enter(call, -1);
    for (i = 0; i < MAX_GPUS; i++)
        indices[i] = i;
    if (r)
        return r;
    if (!strcmp(option("driver", "loaded", value, sizeof value), "notloaded"))
        return DRIVER_NOT_LOADED;
    return OK;
}

static int count(const char *call, unsigned *n)
{
    int r = enter(call, -1);
    *n = (unsigned)number("gpus", 8);
    if (*n > MAX_GPUS)
        *n = MAX_GPUS;
    return r;
}

static int handle(const char *call, unsigned i, void **device)
{
    int r = enter(call, (int)i);
    if (r)
        return r;
    if (i >= MAX_GPUS)
        return INVALID_ARGUMENT;
    if ((int)number("lost", -1) == (int)i)
        return GPU_IS_LOST;
    *device = &indices[i];
    return OK;
}

#define GPU(device) (*(int *)(device))
#define ENTER(device)                          \
    do {                                       \
        int r = enter(__func__, GPU(device));  \
        if (r)                                 \
            return r;                          \
    } while (0)

static unsigned long long gib(double n) { return (unsigned long long)(n * 1073741824.0); }
static const double reserved_gb = 0.5;

int nvmlShutdown(void) { return enter(__func__, -1); }

const char *nvmlErrorString(int r)
{
    switch (r) {
    case OK: return "Success";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case NO_PERMISSION: return "Insufficient Permissions";
    case INSUFFICIENT_SIZE: return "Insufficient Size";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case FUNCTION_NOT_FOUND: return "Function Not Found";
    case GPU_IS_LOST: return "GPU is lost";
    case OPERATING_SYSTEM: return "Operating System Error";
    case LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
    case ARGUMENT_VERSION_MISMATCH: return "Argument version mismatch";
    default: return "Unknown Error";
    }
}

int nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    snprintf(version, length, "595.45.04");
    return enter(__func__, -1);
}

int nvmlDeviceGetName(void *device, char *name, unsigned length)
{
    ENTER(device);
    option("name", "NVIDIA RTX PRO 6000 Blackwell Server Edition", name, length);
    return OK;
}

int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length)
{
    ENTER(device);
    snprintf(uuid, length, "GPU-00000000-0000-4000-8000-%012d", GPU(device));
    return OK;
}

struct memory { unsigned long long total, free, used; };

int nvmlDeviceGetMemoryInfo(void *device, struct memory *m)
{
    ENTER(device);
    m->total = gib(number("total_gb", 96));
    m->used = gib(number("used_gb", 76) + reserved_gb);
    m->free = m->total - m->used;
    return OK;
}

struct utilization { unsigned gpu, memory; };

int nvmlDeviceGetUtilizationRates(void *device, struct utilization *u)
{
    ENTER(device);
    u->gpu = u->memory = (unsigned)number("util", 0);
    return OK;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    ENTER(device);
    *milliwatts = (unsigned)(number("power", 45) * 1000);
    return OK;
}

struct process_v1 { unsigned pid; unsigned long long used; };
struct process_v3 { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; };

/* processes fills an array of elements of size bytes, both layouts begin alike. */
static int processes(unsigned *n, char *out, size_t size)
{
    char pids[4096], memory[16], *rest, *item;
    unsigned long long ids[512], known = 0, i;
    option("pids", "", pids, sizeof pids);
    for (item = strtok_r(pids, ",", &rest); item && known < 512; item = strtok_r(NULL, ",", &rest))
        ids[known++] = strtoull(item, NULL, 10);
    if (*n < known) {
        *n = (unsigned)known;
        return INSUFFICIENT_SIZE;
    }
    *n = (unsigned)known;
    option("pid_memory", "", memory, sizeof memory);
    for (i = 0; i < known; i++) {
        struct process_v1 *p = (void *)(out + i * size);
        p->pid = (unsigned)ids[i];
        p->used = strcmp(memory, "none") ? gib(number("used_gb", 76)) / known : ~0ULL;
    }
    return OK;
}

#ifdef OLD

int nvmlInit(void) { return init(__func__); }
int nvmlDeviceGetCount(unsigned *n) { return count(__func__, n); }
int nvmlDeviceGetHandleByIndex(unsigned i, void **device) { return handle(__func__, i, device); }

int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *n, struct process_v1 *out)
{
    ENTER(device);
    return processes(n, (char *)out, sizeof *out);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons)
{
    ENTER(device);
    *reasons = (unsigned long long)number("clock_reasons", 1);
    return OK;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    ENTER(device);
    (void)sensor;
    *celsius = 41;
    return OK;
}

#else

int nvmlInit_v2(void) { return init(__func__); }
int nvmlDeviceGetCount_v2(unsigned *n) { return count(__func__, n); }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device) { return handle(__func__, i, device); }

struct pci {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char id[32];
};

int nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci)
{
    ENTER(device);
    memset(pci, 0, sizeof *pci);
    pci->bus = 0x10u + (unsigned)GPU(device);
    snprintf(pci->legacy, sizeof pci->legacy, "0000:%02X:00.0", pci->bus);
    snprintf(pci->id, sizeof pci->id, "00000000:%02X:00.0", pci->bus);
    return OK;
}

struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };

int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *m)
{
    ENTER(device);
    if (m->version != (sizeof *m | 2u << 24))
        return ARGUMENT_VERSION_MISMATCH;
    m->total = gib(number("total_gb", 96));
    m->reserved = gib(reserved_gb);
    m->used = gib(number("used_gb", 76));
    m->free = m->total - m->reserved - m->used;
    return OK;
}

int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *reasons)
{
    ENTER(device);
    *reasons = (unsigned long long)number("clock_reasons", 1);
    return OK;
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts)
{
    ENTER(device);
    *milliwatts = (unsigned)(number("limit", 600) * 1000);
    return OK;
}

int nvmlDeviceGetClockInfo(void *device, int clock, unsigned *mhz)
{
    ENTER(device);
    *mhz = clock == 2 ? 12481 : 2430; /* 1 is SM, 2 is memory */
    return OK;
}

struct temperature { unsigned version, sensor; int celsius; };

int nvmlDeviceGetTemperatureV(void *device, struct temperature *t)
{
    ENTER(device);
    if (t->version != (sizeof *t | 1u << 24))
        return ARGUMENT_VERSION_MISMATCH;
    t->celsius = 41;
    return OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n, struct process_v3 *out)
{
    ENTER(device);
    return processes(n, (char *)out, sizeof *out);
}

#endif
