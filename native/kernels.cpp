// Numbers the distinct texts of an Arrow string column: see fallback.py, which specifies it.
//
// Threads number parts of the rows, each part with a hash table of its own; then the tables are merged
// in row order, so that numbers go by first occurrence whatever the number of threads.

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

namespace {

struct Chunk {
    const uint8_t* validity;  // nullptr: no NULLs
    const int32_t* offsets;
    const char* data;
    int64_t offset;  // of the first row, in rows
    int64_t length;
};

template <class Word>
uint64_t load(const char* p) {
    Word word;
    std::memcpy(&word, p, sizeof(Word));
    return word;
}

// Fewer than 8 bytes as one word: two loads that overlap, no loop and no call.
uint64_t load_short(const char* p, size_t n) {
    if (n >= 4) return load<uint32_t>(p) << 32 | load<uint32_t>(p + n - 4);
    if (n == 0) return 0;
    return load<uint8_t>(p) << 16 | load<uint8_t>(p + n / 2) << 8 | load<uint8_t>(p + n - 1);
}

uint64_t mix(uint64_t a, uint64_t b) {
    __uint128_t product = static_cast<__uint128_t>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

constexpr uint64_t kOdd1 = 0xA0761D6478BD642Full;
constexpr uint64_t kOdd2 = 0xD6E8FEB86659FD93ull;

// Multiply-and-fold, 16 bytes a step, in two chains where there are 32 to go. Not seeded: a table
// that degrades costs time, never truth.
uint64_t hash_text(const char* p, size_t n) {
    uint64_t h = n * 0x9E3779B97F4A7C15ull;
    if (n < 8) return mix(h ^ load_short(p, n), kOdd1);
    if (n <= 16) return mix(h ^ load<uint64_t>(p), kOdd1 ^ load<uint64_t>(p + n - 8));
    const char* end = p + n;
    uint64_t other = kOdd2;
    for (; end - p > 32; p += 32) {
        h = mix(h ^ load<uint64_t>(p), kOdd1 ^ load<uint64_t>(p + 8));
        other = mix(other ^ load<uint64_t>(p + 16), kOdd2 ^ load<uint64_t>(p + 24));
    }
    if (end - p > 16) h = mix(h ^ load<uint64_t>(p), kOdd1 ^ load<uint64_t>(p + 8));
    other = mix(other ^ load<uint64_t>(end - 16), kOdd2 ^ load<uint64_t>(end - 8));
    return mix(h, other ^ kOdd1);
}

bool same_text(const char* a, const char* b, size_t n) { return std::memcmp(a, b, n) == 0; }

struct Text {
    const char* data;
    int64_t size;  // -1: NULL
    uint64_t hash;
};

constexpr uint64_t kNullHash = 0x5851F42D4C957F2Dull;

Text text_at(const Chunk& chunk, int64_t at) {
    if (chunk.validity && !(chunk.validity[at >> 3] >> (at & 7) & 1)) return {nullptr, -1, kNullHash};
    const char* data = chunk.data + chunk.offsets[at];
    int64_t size = chunk.offsets[at + 1] - chunk.offsets[at];
    return {data, size, hash_text(data, static_cast<size_t>(size))};
}

class Table {
public:
    Table() : slots_(1024, -1) {}

    int32_t number(const Text& text) {
        size_t mask = slots_.size() - 1;
        for (size_t i = text.hash & mask;; i = (i + 1) & mask) {
            int32_t found = slots_[i];
            if (found < 0) return insert(text, i);
            const Text& other = texts_[found];
            if (other.hash == text.hash && other.size == text.size &&
                (text.size <= 0 || same_text(other.data, text.data, text.size)))
                return found;
        }
    }

    const std::vector<Text>& texts() const { return texts_; }

private:
    int32_t insert(const Text& text, size_t slot) {
        int32_t number = static_cast<int32_t>(texts_.size());
        texts_.push_back(text);
        slots_[slot] = number;
        if (texts_.size() * 2 > slots_.size()) grow();
        return number;
    }

    void grow() {
        std::vector<int32_t> slots(slots_.size() * 4, -1);
        size_t mask = slots.size() - 1;
        for (size_t n = 0; n < texts_.size(); ++n) {
            size_t i = texts_[n].hash & mask;
            while (slots[i] >= 0) i = (i + 1) & mask;
            slots[i] = static_cast<int32_t>(n);
        }
        slots_.swap(slots);
    }

    std::vector<int32_t> slots_;
    std::vector<Text> texts_;
};

// Rows whose hashes are computed before any is looked up, so that the look-ups overlap in memory.
constexpr int64_t kBlock = 256;

// Numbers rows [begin, end) of the column into codes[begin, end).
void number_rows(const std::vector<Chunk>& chunks, int64_t begin, int64_t end, int32_t* codes,
                 Table& table) {
    Text block[kBlock];
    int64_t row = 0;
    for (const Chunk& chunk : chunks) {
        int64_t to = std::min(end - row, chunk.length);
        for (int64_t i = std::max(begin - row, int64_t{0}); i < to; i += kBlock) {
            int64_t n = std::min(kBlock, to - i);
            for (int64_t k = 0; k < n; ++k) block[k] = text_at(chunk, chunk.offset + i + k);
            for (int64_t k = 0; k < n; ++k) codes[row + i + k] = table.number(block[k]);
        }
        row += chunk.length;
    }
}

// Rows that a thread takes at a time: enough to be worth a table of their own, and so few that a
// thread that starts late, or is held up, leaves the rest to the others.
constexpr int64_t kPartRows = 65536;

Table encode(const std::vector<Chunk>& chunks, int64_t rows, int32_t* codes) {
    int64_t cores = std::max(1u, std::thread::hardware_concurrency());
    int64_t parts = std::max(int64_t{1}, rows / kPartRows);
    std::vector<Table> tables(parts);
    auto start_of = [&](int64_t part) { return rows * part / parts; };
    std::atomic<int64_t> next{0};
    auto work = [&] {
        for (int64_t p = next++; p < parts; p = next++)
            number_rows(chunks, start_of(p), start_of(p + 1), codes, tables[p]);
    };
    std::vector<std::thread> threads;
    for (int64_t t = 1; t < std::min(cores, parts); ++t) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();

    Table& all = tables[0];
    for (int64_t p = 1; p < parts; ++p) {
        std::vector<int32_t> renumbered;
        for (const Text& text : tables[p].texts()) renumbered.push_back(all.number(text));
        for (int64_t row = start_of(p); row < start_of(p + 1); ++row)
            codes[row] = renumbered[codes[row]];
    }
    return std::move(all);
}

// The texts as an Arrow large string array: (offsets as bytes of int64, data as bytes, the
// number of the NULL or -1).
PyObject* dictionary(const std::vector<Text>& texts) {
    std::vector<int64_t> offsets{0};
    long long null_number = -1;
    for (size_t n = 0; n < texts.size(); ++n) {
        if (texts[n].size < 0) null_number = static_cast<long long>(n);
        offsets.push_back(offsets.back() + std::max(texts[n].size, int64_t{0}));
    }
    PyObject* data = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(offsets.back()));
    if (!data) return nullptr;
    for (size_t n = 0; n < texts.size(); ++n)
        if (texts[n].size > 0)
            std::memcpy(PyBytes_AS_STRING(data) + offsets[n], texts[n].data, texts[n].size);
    PyObject* places = PyBytes_FromStringAndSize(
        reinterpret_cast<const char*>(offsets.data()),
        static_cast<Py_ssize_t>(offsets.size() * sizeof(int64_t)));
    return Py_BuildValue("(NNL)", places, data, null_number);
}

template <class T>
T* pointer(unsigned long long address) {
    return reinterpret_cast<T*>(static_cast<uintptr_t>(address));
}

// encode(chunks, rows, codes): chunks are tuples (validity, offsets, data, offset, length) of
// addresses and counts; codes the address of `rows` int32. Returns the distinct texts: see dictionary.
PyObject* encode_py(PyObject*, PyObject* args) {
    PyObject* list;
    long long rows;
    unsigned long long codes;
    if (!PyArg_ParseTuple(args, "O!LK", &PyList_Type, &list, &rows, &codes)) return nullptr;
    std::vector<Chunk> chunks;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
        unsigned long long validity, offsets, data;
        long long offset, length;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "KKKLL", &validity, &offsets, &data,
                              &offset, &length))
            return nullptr;
        chunks.push_back({pointer<const uint8_t>(validity), pointer<const int32_t>(offsets),
                          pointer<const char>(data), offset, length});
    }
    Table table;
    bool failed = false;
    Py_BEGIN_ALLOW_THREADS
    try {
        table = encode(chunks, rows, pointer<int32_t>(codes));
    } catch (const std::exception&) {
        failed = true;
    }
    Py_END_ALLOW_THREADS
    return failed ? PyErr_NoMemory() : dictionary(table.texts());
}

PyMethodDef methods[] = {{"encode", encode_py, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyModuleDef module = {PyModuleDef_HEAD_INIT, "_kernels", nullptr, -1, methods,
                      nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__kernels() { return PyModule_Create(&module); }
