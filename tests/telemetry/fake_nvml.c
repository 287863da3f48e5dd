/* A driver of three GPUs for tests: 0 answers everything, 1 lacks most meters, 2 is lost.
 * Every call is written to the file that FAKE_NVML_LOG names, so a test can see that nothing was set. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15 };

typedef struct { int index; } device_t;
static device_t devices[3] = {{0}, {1}, {2}};

static int answered(const char *name, const device_t *device) {
    const char *path = getenv("FAKE_NVML_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (log) {
        fprintf(log, "%s\n", name);
        fclose(log);
    }
    return device && device->index == 1 ? NOT_SUPPORTED : SUCCESS;
}

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    answered(__func__, NULL);
    return getenv("FAKE_NVML_NO_DRIVER") ? DRIVER_NOT_LOADED : SUCCESS;
}

int nvmlShutdown(void) { return answered(__func__, NULL); }

int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = 3;
    return answered(__func__, NULL);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t **device) {
    *device = &devices[index];
    answered(__func__, NULL);
    return index == 2 ? GPU_IS_LOST : SUCCESS;
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
METER(nvmlDeviceGetEnforcedPowerLimit, 350000)
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

/* What must never be called. */
int nvmlDeviceSetPowerManagementLimit(device_t *device, unsigned milliwatts) {
    (void)milliwatts;
    return answered(__func__, device);
}

int nvmlDeviceSetPersistenceMode(device_t *device, int mode) {
    (void)mode;
    return answered(__func__, device);
}

int nvmlDeviceSetTemperatureThreshold(device_t *device, int kind, int *celsius) {
    (void)kind;
    (void)celsius;
    return answered(__func__, device);
}
