/* A driver of three GPUs for tests: 0 answers everything, 1 lacks most meters, 2 is lost.
 * Every call is written to the file that FAKE_NVML_LOG names, so a test can see what was set, and when.
 * FAKE_NVML_GPUS=8 makes it a driver of eight that answer everything. FAKE_NVML_NO_PERMISSION forbids setting.
 * The limits that are set live in this process, as the real ones live in the driver: see FAKE_NVML_LIMITS. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15 };

typedef struct { int index; } device_t;
static device_t devices[8] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};

static int is_sound(void) { return getenv("FAKE_NVML_GPUS") != NULL; }

/* One file for each GPU: a limit outlives whoever set it. */
static unsigned limit_of(const device_t *device, unsigned set) {
    const char *folder = getenv("FAKE_NVML_LIMITS");
    char path[4096];
    unsigned value = 350000;
    if (!folder) return value;
    snprintf(path, sizeof path, "%s/%d", folder, device->index);
    FILE *file = fopen(path, set ? "w" : "r");
    if (!file) return 400000;
    if (set) fprintf(file, "%u", set);
    else if (fscanf(file, "%u", &value) != 1) value = 0;
    fclose(file);
    return set ? set : value;
}

static int answered(const char *name, const device_t *device) {
    const char *path = getenv("FAKE_NVML_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (log) {
        fprintf(log, "%s\n", name);
        fclose(log);
    }
    return device && device->index == 1 && !is_sound() ? NOT_SUPPORTED : SUCCESS;
}

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    answered(__func__, NULL);
    return getenv("FAKE_NVML_NO_DRIVER") ? DRIVER_NOT_LOADED : SUCCESS;
}

int nvmlShutdown(void) { return answered(__func__, NULL); }

int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = is_sound() ? 8 : 3;
    return answered(__func__, NULL);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t **device) {
    *device = &devices[index];
    answered(__func__, NULL);
    return index == 2 && !is_sound() ? GPU_IS_LOST : SUCCESS;
}

int nvmlDeviceGetName(device_t *device, char *name, unsigned length) {
    answered(__func__, NULL);
    snprintf(name, length, device->index ? "Old GPU" : "NVIDIA A100-SXM4-80GB");
    return SUCCESS;
}

int nvmlDeviceGetUUID(device_t *device, char *uuid, unsigned length) {
    answered(__func__, NULL);
    snprintf(uuid, length, "GPU-%d", device->index);
    return SUCCESS;
}

#define METER(name, number)                             \
    int name(device_t *device, unsigned *value) {       \
        *value = (number);                              \
        return answered(__func__, device);              \
    }
METER(nvmlDeviceGetPowerUsage, 312500)
METER(nvmlDeviceGetEnforcedPowerLimit, limit_of(device, 0))
METER(nvmlDeviceGetPowerManagementLimit, limit_of(device, 0))
METER(nvmlDeviceGetPowerManagementDefaultLimit, 400000)

int nvmlDeviceGetPowerManagementLimitConstraints(device_t *device, unsigned *least, unsigned *most) {
    *least = 100000;
    *most = 400000;
    return answered(__func__, device);
}

int nvmlDeviceGetTemperature(device_t *device, int sensor, unsigned *celsius) {
    (void)device;
    *celsius = sensor == 0 ? 61 : 0;
    return answered(__func__, NULL);
}

int nvmlDeviceGetTemperatureThreshold(device_t *device, int kind, unsigned *celsius) {
    *celsius = kind == 0 ? 92 : kind == 1 ? 89 : 85;
    return answered(__func__, device);
}

int nvmlDeviceGetUtilizationRates(device_t *device, unsigned rates[2]) {
    rates[0] = 87;
    rates[1] = 40;
    return answered(__func__, device);
}

int nvmlDeviceGetMemoryInfo(device_t *device, unsigned long long memory[3]) {
    memory[0] = 85899345920ULL; /* total, free, used */
    memory[1] = 65899345920ULL;
    memory[2] = 20000000000ULL;
    return answered(__func__, device);
}

int nvmlDeviceGetClockInfo(device_t *device, int type, unsigned *mhz) {
    *mhz = type == 1 ? 1410 : 0;
    return answered(__func__, device);
}

int nvmlDeviceGetTotalEnergyConsumption(device_t *device, unsigned long long *millijoules) {
    *millijoules = 123456789ULL;
    return answered(__func__, device);
}

int nvmlDeviceGetViolationStatus(device_t *device, int policy, unsigned long long status[2]) {
    status[0] = 1000000ULL;
    status[1] = policy == 0 ? 2500000000ULL : 500000000ULL; /* ns, by power and by heat */
    return answered(__func__, device);
}

int nvmlDeviceSetPowerManagementLimit(device_t *device, unsigned milliwatts) {
    char said[80];
    snprintf(said, sizeof said, "%s %d %u", __func__, device->index, milliwatts);
    if (getenv("FAKE_NVML_NO_PERMISSION")) {
        answered(said, NULL);
        return NO_PERMISSION;
    }
    if (milliwatts < 100000 || milliwatts > 400000) return INVALID_ARGUMENT;
    limit_of(device, milliwatts);
    return answered(said, device);
}

/* What must never be called. */

int nvmlDeviceSetPersistenceMode(device_t *device, int mode) {
    (void)mode;
    return answered(__func__, device);
}

int nvmlDeviceSetTemperatureThreshold(device_t *device, int kind, int *celsius) {
    (void)kind;
    (void)celsius;
    return answered(__func__, device);
}
