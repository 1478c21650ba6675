// Attention for llama.cpp on a CPU, for batches of many short rows behind one beginning.
//
// llama.cpp looks at the whole key-value store in tiles, most of which a row does not see, or token by token. Here a token
// takes the cells that it sees and no others, tokens of a batch that begin alike take what they share together, and no bit
// of a row depends on its company: see attention_kernel.h.
//
// llama.cpp calls observe() before and after each step of its graph, if asked to (cb_eval of llama_context_params). A step
// of attention is struck out before, and computed here after.

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <unordered_map>
#include <vector>

#include "thread_team.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if __has_include(<ggml.h>)
#include <ggml.h>
#define BF_HAS_GGML 1
#endif

namespace {

// A tensor as ggml.h declares it. Where llama-cpp-python has installed that header, the compiler compares the layouts;
// models/services/llama/attention.py compares them once more at run time, with tensors that ggml's own functions make.
struct Tensor {
    int32_t type;
    void* buffer;
    int64_t sizes[4];
    size_t steps[4];
    int32_t op;
    int32_t params[16];
    int32_t flags;
    Tensor* sources[10];
    Tensor* viewed;
    size_t view_offset;
    void* data;
    char name[64];
};

#if defined(BF_HAS_GGML)
#define BF_SAME(own, theirs)                                                                            \
    static_assert(offsetof(Tensor, own) == offsetof(ggml_tensor, theirs) &&                             \
                      sizeof(Tensor::own) == sizeof(ggml_tensor::theirs),                               \
                  "ggml.h declares " #theirs " in another way")
BF_SAME(type, type);
BF_SAME(sizes, ne);
BF_SAME(steps, nb);
BF_SAME(op, op);
BF_SAME(params, op_params);
BF_SAME(sources, src);
BF_SAME(viewed, view_src);
BF_SAME(view_offset, view_offs);
BF_SAME(data, data);
BF_SAME(name, name);
#undef BF_SAME
#endif

constexpr int64_t kCellsAtATime = 128;  // whose values are unpacked together
constexpr int64_t kTokensAtATime = 16;

// One step of attention.
struct Node {
    explicit Node(const Tensor& t)
        : q(*t.sources[0]), k(*t.sources[1]), v(*t.sources[2]), dst(t), dims(q.sizes[0]), heads(q.sizes[2]),
          kv_heads(k.sizes[2]) {
        std::memcpy(&scale, t.params, sizeof scale);
    }

    template <class T>
    static T* at(const Tensor& t, int64_t i, int64_t j) {
        return reinterpret_cast<T*>(static_cast<char*>(t.data) + i * t.steps[1] + j * t.steps[2]);
    }
    const float* query(int64_t token, int64_t head) const { return at<float>(q, token, head); }
    const uint16_t* key(int64_t cell, int64_t head) const { return at<uint16_t>(k, cell, head); }
    const uint16_t* value(int64_t cell, int64_t head) const { return at<uint16_t>(v, cell, head); }
    float* out(int64_t token, int64_t head) const { return at<float>(dst, head, token); }

    const Tensor &q, &k, &v, &dst;
    int64_t dims, heads, kv_heads;
    float scale;
};

// The cells that each token of a batch sees, in the order in which they were written.
struct Seen {
    std::vector<int32_t> all;
    std::vector<int64_t> starts{0};
    const int32_t* cells(int64_t token) const { return all.data() + starts[token]; }
    int64_t count(int64_t token) const { return starts[token + 1] - starts[token]; }
};

// Tokens that follow one another in a batch, and how many cells all of them see first.
struct Block {
    int64_t begin, end, common;
};

class Scratch {
public:
    float* part(int number, int64_t count) {
        std::vector<float>& held = parts_[number];
        if (held.size() < static_cast<size_t>(count)) held.resize(static_cast<size_t>(count));
        return held.data();
    }

private:
    std::vector<float> parts_[6];
};

using Attend = void (*)(const Node&, const Seen&, const Block&, int64_t, Scratch&);

// Which of these a processor knows is asked when a context is opened.
#define BF_LANES(count) \
    constexpr int64_t kLanes = count; \
    typedef float Lanes __attribute__((vector_size(count * sizeof(float)))); \
    inline Lanes load_half(const uint16_t* p)

namespace plain {
BF_LANES(4) {
    Lanes lanes;
    for (int i = 0; i < 4; ++i) {
#if defined(__ARM_FP16_FORMAT_IEEE)
        __fp16 half;
        std::memcpy(&half, p + i, sizeof half);
        lanes[i] = half;
#else
        const int32_t exponent = p[i] >> 10 & 31, fraction = p[i] & 1023;
        float size = exponent == 31  ? (fraction ? NAN : INFINITY)
                     : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                     : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
        lanes[i] = p[i] >> 15 ? -size : size;
#endif
    }
    return lanes;
}
#include "attention_kernel.h"
}  // namespace plain

#if defined(__x86_64__)
#define BF_PRAGMA(words) _Pragma(#words)
#if defined(__clang__)
#define BF_BEGIN(set) BF_PRAGMA(clang attribute push(__attribute__((target(set))), apply_to = function))
#define BF_END BF_PRAGMA(clang attribute pop)
#define BF_WHOLE ""  // vectors of sixteen are not split by it
#else
#define BF_BEGIN(set) BF_PRAGMA(GCC push_options) BF_PRAGMA(GCC target(set))
#define BF_END BF_PRAGMA(GCC pop_options)
#define BF_WHOLE ",prefer-vector-width=512"
#endif
BF_BEGIN("avx2,fma,f16c")
namespace avx2 {
BF_LANES(8) { return (Lanes)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
#include "attention_kernel.h"
}  // namespace avx2
BF_END
BF_BEGIN("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,f16c" BF_WHOLE)
namespace avx512 {
BF_LANES(16) { return (Lanes)_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
#include "attention_kernel.h"
}  // namespace avx512
BF_END
#endif

// The instruction set with vectors of so many floats; nullptr where this processor, or what compiled this, has none.
Attend with_lanes(int lanes) {
#if defined(__x86_64__)
    if (lanes == 16 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        return avx512::attend;
    // No processor has AVX2 without F16C, of which older compilers cannot ask.
    if (lanes == 8 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::attend;
#endif
    return lanes == 4 ? plain::attend : nullptr;
}

// The widest; 0 where llama.cpp's own attention should be as fast.
int best_lanes() {
    for (int lanes : {16, 8})
        if (with_lanes(lanes)) return lanes;
#if defined(__ARM_FP16_FORMAT_IEEE)
    return 4;
#else
    return 0;
#endif
}

constexpr uint16_t kVisible = 0, kHidden = 0xFC00;  // zero and minus infinity in 16 bits
constexpr float kNear = 0.02f;

struct Names {  // of ggml's numbers, which differ between its versions
    int32_t attention, set_rows, f32, f16, i64;
};

class Attention {
public:
    Attention(int threads, Attend attend, Names names) : team_(std::max(1, threads)), names_(names), attend_(attend) {}

    // Before a step: whether to be called after it. After it: whether to go on.
    bool observe(Tensor* t, bool before) {
        try {
            return before ? comes(t) : came(t);
        } catch (const std::bad_alloc&) {
            failed_ = true;
            return !before;
        }
    }

    // What became of a batch: 0 nothing was computed here, 1 attention was, -1 it failed.
    int settle() {
        restore();
        begun_ = nullptr;
        bool failed = failed_;
        failed_ = false;
        return failed ? -1 : used_ && !off_;
    }

private:
    bool comes(Tensor* t) {
        if (t->op == names_.set_rows) note(*t);
        if (off_ || t->op != names_.attention) return false;
        if (!possible(*t) || !look(*t)) {
            off_ = true;
            return false;
        }
        struck_ = t;
        if (trusted()) t->op = 0;
        return true;
    }

    bool came(Tensor* t) {
        if (t != struck_) return true;
        const bool theirs = t->op == names_.attention;
        restore();
        if (theirs) {
            const char* data = static_cast<const char*>(t->data);
            std::vector<char> kept(data, data + static_cast<size_t>(t->sizes[2]) * t->steps[2]);
            compute(*t);
            off_ = !alike(*t, kept.data());
            if (off_) std::memcpy(t->data, kept.data(), kept.size());
            ++compared_;
        } else {
            compute(*t);
        }
        used_ = true;
        return true;
    }

    // The first steps are computed by llama.cpp as well.
    bool trusted() const { return compared_ >= kCompared; }

    static bool alike(const Tensor& a, char* other) {
        Tensor b = a;
        b.data = other;
        float most = 0;
        auto all = [&](auto holds) {
            for (int64_t i = 0; i < a.sizes[2]; ++i)
                for (int64_t j = 0; j < a.sizes[1]; ++j)
                    for (int64_t d = 0; d < a.sizes[0]; ++d)
                        if (!holds(Node::at<float>(a, j, i)[d], Node::at<float>(b, j, i)[d])) return false;
            return true;
        };
        all([&](float, float y) { return most = std::max(most, std::fabs(y)), true; });
        return all([&](float x, float y) { return std::fabs(x - y) <= kNear * most; });  // not, if one is no number
    }

    void restore() {
        if (struck_ != nullptr) struck_->op = names_.attention;
        struck_ = nullptr;
    }

    bool possible(const Tensor& t) const {
        const Tensor *q = t.sources[0], *k = t.sources[1], *v = t.sources[2], *mask = t.sources[3];
        if (!q || !k || !v || !mask || t.sources[4]) return false;
        float limit[2];  // of ALiBi and of scores
        std::memcpy(limit, t.params + 1, sizeof limit);
        auto in_order = [](const Tensor& x, size_t size) { return x.steps[0] == size && x.sizes[3] == 1; };
        return limit[0] == 0 && limit[1] == 0 && t.type == names_.f32 && q->type == names_.f32 &&
               k->type == names_.f16 && v->type == names_.f16 && mask->type == names_.f16 &&
               in_order(*q, 4) && in_order(*k, 2) && in_order(*v, 2) && in_order(*mask, 2) && in_order(t, 4) &&
               t.steps[2] == t.steps[1] * static_cast<size_t>(t.sizes[1]) &&
               mask->sizes[0] >= k->sizes[1] && mask->sizes[1] >= q->sizes[1] && mask->sizes[2] == 1 &&
               v->sizes[1] == k->sizes[1] && q->sizes[0] % 16 == 0 && v->sizes[0] == q->sizes[0] &&
               k->sizes[0] == q->sizes[0] && v->sizes[2] == k->sizes[2] && q->sizes[2] % k->sizes[2] == 0 &&
               t.sizes[0] == q->sizes[0] && t.sizes[1] == q->sizes[2] && t.sizes[2] == q->sizes[1];
    }

    // Remember when cells are written: SET_ROWS puts the keys of a batch's tokens into the cells that it lists.
    void note(const Tensor& t) {
        const Tensor* places = t.sources[1];
        const Tensor* store = t.viewed;
        if (!places || !store || places->type != names_.i64 || places->steps[0] != 8) return;
        if (begun_ == nullptr || begun_ == store) {  // a new batch, or the next part of one
            begun_ = store;
            seen_.clear();
        }
        Written& written = written_[store];
        const int64_t* cells = static_cast<const int64_t*>(places->data);
        for (int64_t i = 0; i < places->sizes[0]; ++i) {
            if (cells[i] < 0 || cells[i] > INT32_MAX) return;
            if (static_cast<size_t>(cells[i]) >= written.when.size())
                written.when.resize(static_cast<size_t>(cells[i]) + 1);
            written.when[static_cast<size_t>(cells[i])] = ++written.count;
        }
    }

    // Which cells each token sees; false if the mask says more than that.
    bool look(const Tensor& t) {
        const Tensor& mask = *t.sources[3];
        if (begun_ == nullptr || t.sources[1]->viewed == nullptr) return false;  // nobody told when cells were written
        if (seen_.count(mask.data)) return true;
        std::vector<int64_t>& when = written_[t.sources[1]->viewed].when;
        View view;
        const int64_t cells = t.sources[1]->sizes[1], tokens = t.sources[0]->sizes[1];
        if (when.size() < static_cast<size_t>(cells)) when.resize(static_cast<size_t>(cells));
        for (int64_t token = 0; token < tokens; ++token) {
            const uint16_t* row = Node::at<uint16_t>(mask, token, 0);
            const size_t start = view.seen.all.size();
            bool ordered = true;
            int64_t last = 0;
            for (int64_t cell = 0; cell < cells;) {
                uint64_t four;
                if (cell + 4 <= cells && (std::memcpy(&four, row + cell, 8), four == kHidden * 0x0001000100010001ull)) {
                    cell += 4;
                    continue;
                }
                if (row[cell] == kVisible) {
                    view.seen.all.push_back(static_cast<int32_t>(cell));
                    const int64_t at = when[static_cast<size_t>(cell)];
                    ordered = ordered && at >= last;
                    last = at;
                } else if (row[cell] != kHidden) {
                    return false;
                }
                ++cell;
            }
            if (view.seen.all.size() == start) return false;
            if (!ordered)
                std::sort(view.seen.all.begin() + static_cast<int64_t>(start), view.seen.all.end(),
                          [&](int32_t a, int32_t b) { return when[static_cast<size_t>(a)] < when[static_cast<size_t>(b)]; });
            view.seen.starts.push_back(static_cast<int64_t>(view.seen.all.size()));
        }
        view.cut(tokens);
        seen_[mask.data] = std::move(view);
        return true;
    }

    void compute(const Tensor& t) {
        const Node node(t);
        const View& view = seen_[t.sources[3]->data];
        const int64_t blocks = static_cast<int64_t>(view.blocks.size());
        team_.share(blocks * node.kv_heads, [&](int64_t n, Scratch& scratch) {
            attend_(node, view.seen, view.blocks[static_cast<size_t>(n % blocks)], n / blocks, scratch);
        });
    }

    struct Written {
        std::vector<int64_t> when;  // by cell
        int64_t count = 0;
    };
    struct View {
        Seen seen;
        std::vector<Block> blocks;

        void cut(int64_t tokens) {
            for (int64_t token = 0; token < tokens; ++token) {
                const int64_t same = blocks.empty() ? 0 : shared(blocks.back(), token);
                // A token that begins otherwise would take from the others what they share.
                if (blocks.empty() || token - blocks.back().begin == kTokensAtATime || 2 * same < blocks.back().common)
                    blocks.push_back({token, token + 1, seen.count(token)});
                else
                    blocks.back() = {blocks.back().begin, token + 1, same};
            }
        }
        int64_t shared(const Block& block, int64_t token) const {
            const int32_t *a = seen.cells(block.begin), *b = seen.cells(token);
            const int64_t most = std::min(block.common, seen.count(token));
            return std::mismatch(a, a + most, b).first - a;
        }
    };

    static constexpr int kCompared = 4;
    Team<Scratch> team_;
    const Names names_;
    const Attend attend_;
    std::unordered_map<const Tensor*, Written> written_;  // by the tensor that holds the cells
    std::unordered_map<const void*, View> seen_;          // by the mask's data, in this batch
    const Tensor* begun_ = nullptr;
    Tensor* struck_ = nullptr;
    int compared_ = 0;
    bool off_ = false, used_ = false, failed_ = false;
};

bool observe(Tensor* t, bool before, void* attention) { return static_cast<Attention*>(attention)->observe(t, before); }

template <class T>
T* pointer(unsigned long long address) {
    return reinterpret_cast<T*>(static_cast<uintptr_t>(address));
}

unsigned long long address(const void* p) { return reinterpret_cast<uintptr_t>(p); }

// create(threads, lanes, numbers of FLASH_ATTN_EXT, SET_ROWS, F32, F16, I64): what observe() is to be told.
PyObject* create_py(PyObject*, PyObject* args) {
    int threads, lanes;
    Names names;
    if (!PyArg_ParseTuple(args, "iiiiiii", &threads, &lanes, &names.attention, &names.set_rows, &names.f32, &names.f16,
                          &names.i64))
        return nullptr;
    Attend attend = with_lanes(lanes);
    if (!attend) return PyErr_Format(PyExc_ValueError, "no vectors of %d floats here", lanes);
    try {
        return PyLong_FromUnsignedLongLong(address(new Attention(threads, attend, names)));
    } catch (const std::exception&) {
        return PyErr_NoMemory();
    }
}

PyObject* close_py(PyObject*, PyObject* args) {
    unsigned long long attention;
    if (!PyArg_ParseTuple(args, "K", &attention)) return nullptr;
    delete pointer<Attention>(attention);
    Py_RETURN_NONE;
}

PyObject* settle_py(PyObject*, PyObject* args) {
    unsigned long long attention;
    if (!PyArg_ParseTuple(args, "K", &attention)) return nullptr;
    return PyLong_FromLong(pointer<Attention>(attention)->settle());
}

// describe(address of a tensor): what is believed of it.
PyObject* describe_py(PyObject*, PyObject* args) {
    unsigned long long tensor;
    if (!PyArg_ParseTuple(args, "K", &tensor)) return nullptr;
    const Tensor& t = *pointer<const Tensor>(tensor);
    float scale;
    std::memcpy(&scale, t.params, sizeof scale);
    return Py_BuildValue("{s:i,s:i,s:(LLLL),s:(KKKK),s:(KKKKK),s:K,s:K,s:K,s:f}", "type", t.type, "op", t.op, "sizes",
                         (long long)t.sizes[0], (long long)t.sizes[1], (long long)t.sizes[2], (long long)t.sizes[3],
                         "steps", (unsigned long long)t.steps[0], (unsigned long long)t.steps[1],
                         (unsigned long long)t.steps[2], (unsigned long long)t.steps[3], "sources",
                         address(t.sources[0]), address(t.sources[1]), address(t.sources[2]), address(t.sources[3]),
                         address(t.sources[4]), "viewed", address(t.viewed), "data", address(t.data), "name",
                         address(t.name), "scale", scale);
}

PyMethodDef methods[] = {{"create", create_py, METH_VARARGS, nullptr},
                         {"close", close_py, METH_VARARGS, nullptr},
                         {"settle", settle_py, METH_VARARGS, nullptr},
                         {"describe", describe_py, METH_VARARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyModuleDef module = {PyModuleDef_HEAD_INIT, "_attention", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__attention() {
    PyObject* made = PyModule_Create(&module);
    if (!made) return nullptr;
    PyObject* where = PyLong_FromUnsignedLongLong(address(reinterpret_cast<void*>(&observe)));
    if (PyModule_AddObject(made, "observe", where) < 0 || PyModule_AddIntConstant(made, "lanes", best_lanes()) < 0) {
        Py_DECREF(made);
        return nullptr;
    }
    return made;
}
