/* Kernel: splits numbers of two bytes and pairs their exponents, in one pass over memory.

   To the byte what _split_turned in planes.py and pair in pairs.py do with NumPy; kernel.py calls it, and
   sees to it that the buffers are long enough. All is done on single bytes, so neither the machine's byte
   order nor where the numbers begin matters. */

#include <stddef.h>
#include <stdint.h>

enum {
    INTERFACE = 1, /* as in kernel.py; another one with every change of what is taken or given */
    VALUES = 15,   /* have the codes 0 to 14 */
    APART = 15,
    BLOCK = 64 /* even; so long that compilers use vectors, so short that few blocks hold a byte apart */
};

int wattline_kernel_interface(void)
{
    return INTERFACE;
}

/* At most BLOCK numbers; gives how many bytes were kept apart. */
static inline size_t split_and_pair_block(const uint8_t *restrict numbers, size_t count, uint8_t lowest,
                                          uint8_t *restrict rest, uint8_t *restrict pairs,
                                          uint8_t *restrict apart)
{
    uint8_t codes[BLOCK];
    uint8_t highest = 0;
    size_t apart_count = 0;

    for (size_t i = 0; i < count; i++) {
        uint8_t low = numbers[2 * i], high = numbers[2 * i + 1];
        rest[i] = (uint8_t)(low << 1 | high >> 7);
        codes[i] = (uint8_t)((high << 1 | low >> 7) - lowest);
    }
    for (size_t i = 0; i < count; i++)
        highest = codes[i] > highest ? codes[i] : highest;
    if (highest >= VALUES) {
        for (size_t i = 0; i < count; i++) {
            if (codes[i] >= VALUES) {
                apart[apart_count++] = (uint8_t)(codes[i] + lowest);
                codes[i] = APART;
            }
        }
    }
    for (size_t i = 0; i < count / 2; i++)
        pairs[i] = (uint8_t)(codes[2 * i] | codes[2 * i + 1] << 4);
    if (count % 2)
        pairs[count / 2] = codes[count - 1];
    return apart_count;
}

/* Reads 2 * count bytes; fills count of rest and (count + 1) / 2 of pairs; gives how many of apart it filled,
   at most count. The buffers must not overlap. */
size_t wattline_split_and_pair(const uint8_t *restrict numbers, size_t count, uint8_t lowest,
                               uint8_t *restrict rest, uint8_t *restrict pairs, uint8_t *restrict apart)
{
    size_t apart_count = 0, at = 0;

    for (; count - at >= BLOCK; at += BLOCK)
        apart_count += split_and_pair_block(numbers + 2 * at, BLOCK, lowest, rest + at, pairs + at / 2,
                                            apart + apart_count);
    return apart_count + split_and_pair_block(numbers + 2 * at, count - at, lowest, rest + at,
                                              pairs + at / 2, apart + apart_count);
}
