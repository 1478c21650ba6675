// The arithmetic of attention.cpp. Included once for each instruction set, inside a namespace of its own, with
// kLanes, Lanes (a vector of so many floats) and load_half() defined there.
//
// Whatever else is computed, in blocks of whatever shape: a query's score of a cell is one chain of multiply-adds
// over the dimensions, what it takes of the values one chain over the cells in the order of the row, and the sum
// of its weights goes by a cell's place in the row. So no bit of a row depends on other rows, nor on where its cells lie.

typedef int32_t Ints __attribute__((vector_size(kLanes * sizeof(int32_t))));

inline Lanes load(const float* p) {
    Lanes lanes;
    std::memcpy(&lanes, p, sizeof lanes);
    return lanes;
}

inline void store(float* p, Lanes lanes) { std::memcpy(p, &lanes, sizeof lanes); }

inline Lanes all(float value) { return value - Lanes{}; }

// e to the power of x, for x from -87 to 0: a power of two, and a polynomial for the rest (its coefficients are those of
// the series, good to 2e-7 as |rest| is at most log(2) / 2).
inline Lanes exponential(Lanes x) {
    const Lanes least = all(-87.0f);
    x = x > least ? x : least;
    const Lanes shift = all(12582912.0f);  // 1.5 * 2^23: what is added to it is rounded to a whole number
    Lanes shifted = x * 1.44269504f + shift;
    Lanes whole = shifted - shift;
    Lanes rest = x - whole * 0.693145752f;
    rest = rest - whole * 1.42860677e-6f;
    Lanes sum = rest * (1.0f / 720) + (1.0f / 120);
    sum = sum * rest + (1.0f / 24);
    sum = sum * rest + (1.0f / 6);
    sum = sum * rest + 0.5f;
    sum = sum * rest + 1.0f;
    sum = sum * rest + 1.0f;
    Ints bits, offset;
    std::memcpy(&bits, &shifted, sizeof bits);
    std::memcpy(&offset, &shift, sizeof offset);
    bits = (bits - offset + 127) << 23;
    Lanes power;
    std::memcpy(&power, &bits, sizeof power);
    return sum * power;
}

// Keys of kLanes cells, dimension by dimension.
inline void pack(const Node& node, int64_t head, const int32_t* cells, int64_t count, float* panel) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
        const uint16_t* key = node.key(cells[lane < count ? lane : 0], head);
        for (int64_t d = 0; d < node.dims; d += kLanes) {
            float part[kLanes];
            store(part, load_half(key + d));
            for (int64_t i = 0; i < kLanes; ++i) panel[(d + i) * kLanes + lane] = part[i];
        }
    }
}

// Scores of kLanes cells for some queries.
template <int Queries>
inline void score(const float* queries, int64_t dims, const float* panel, float* scores, int64_t stride) {
    Lanes sums[Queries] = {};
    for (int64_t d = 0; d < dims; ++d) {
        Lanes keys = load(panel + d * kLanes);
        for (int j = 0; j < Queries; ++j) sums[j] += queries[j * dims + d] * keys;
    }
    for (int j = 0; j < Queries; ++j) store(scores + j * stride, sums[j]);
}

inline void score_all(const float* queries, int64_t count, int64_t dims, const float* panel, float* scores,
                      int64_t stride) {
    int64_t j = 0;
    for (; j + 8 <= count; j += 8) score<8>(queries + j * dims, dims, panel, scores + j * stride, stride);
    for (; j + 3 <= count; j += 3) score<3>(queries + j * dims, dims, panel, scores + j * stride, stride);
    for (; j < count; ++j) score<1>(queries + j * dims, dims, panel, scores + j * stride, stride);
}

// Makes weights of a query's scores; returns one over their sum. There is room for kLanes more.
inline float weigh(float* scores, int64_t count) {
    store(scores + count, all(-3e38f));
    Lanes most = load(scores);
    for (int64_t i = kLanes; i < count; i += kLanes) {
        Lanes some = load(scores + i);
        most = some > most ? some : most;
    }
    float top = most[0];
    for (int64_t i = 1; i < kLanes; ++i) top = most[i] > top ? most[i] : top;
    Lanes sums{};
    for (int64_t i = 0; i < count; i += kLanes) {
        Lanes weights = exponential(load(scores + i) - top);
        store(scores + i, weights);
        sums += weights;
    }
    float sum = 0;
    for (int64_t i = 0; i < kLanes; ++i) sum += sums[i];
    return 1.0f / sum;
}

// Adds values of cells to what some queries have of them, Parts * kLanes dimensions at a time.
template <int Queries, int Parts>
inline void gather(const float* weights, int64_t stride, const float* values, int64_t step, int64_t cells, float* sums,
                   int64_t dims) {
    Lanes held[Queries][Parts];
    for (int j = 0; j < Queries; ++j)
        for (int p = 0; p < Parts; ++p) held[j][p] = load(sums + j * dims + p * kLanes);
    for (int64_t i = 0; i < cells; ++i) {
        Lanes value[Parts];
        for (int p = 0; p < Parts; ++p) value[p] = load(values + i * step + p * kLanes);
        for (int j = 0; j < Queries; ++j)
            for (int p = 0; p < Parts; ++p) held[j][p] += weights[j * stride + i] * value[p];
    }
    for (int j = 0; j < Queries; ++j)
        for (int p = 0; p < Parts; ++p) store(sums + j * dims + p * kLanes, held[j][p]);
}

template <int Parts>
inline void gather_rows(const float* weights, int64_t count, int64_t stride, const float* values, int64_t step,
                        int64_t cells, float* sums, int64_t dims) {
    constexpr int kMost = kLanes == 16 ? 6 : 2;
    int64_t j = 0;
    for (; j + kMost <= count; j += kMost)
        gather<kMost, Parts>(weights + j * stride, stride, values, step, cells, sums + j * dims, dims);
    for (; j < count; ++j)
        gather<1, Parts>(weights + j * stride, stride, values, step, cells, sums + j * dims, dims);
}

inline void gather_all(const float* weights, int64_t count, int64_t stride, const float* values, int64_t cells,
                       float* sums, int64_t dims) {
    int64_t d = 0;
    for (; d + 4 * kLanes <= dims; d += 4 * kLanes)
        gather_rows<4>(weights, count, stride, values + d, dims, cells, sums + d, dims);
    for (; d < dims; d += kLanes)
        gather_rows<1>(weights, count, stride, values + d, dims, cells, sums + d, dims);
}

inline void unpack(const Node& node, int64_t head, const int32_t* cells, int64_t count, float* values) {
    for (int64_t i = 0; i < count; ++i) {
        const uint16_t* value = node.value(cells[i], head);
        for (int64_t d = 0; d < node.dims; d += kLanes) store(values + i * node.dims + d, load_half(value + d));
    }
}

// What the queries of one block take of one head of keys and values.
void attend(const Node& node, const Seen& seen, const Block& block, int64_t head, Scratch& scratch) {
    const int64_t dims = node.dims, group = node.heads / node.kv_heads, count = (block.end - block.begin) * group;
    int64_t longest = 0;
    for (int64_t t = block.begin; t < block.end; ++t) longest = std::max(longest, seen.count(t));
    const int64_t stride = longest + 2 * kLanes;
    float* queries = scratch.part(0, count * dims);
    float* scores = scratch.part(1, count * stride);
    float* sums = scratch.part(2, count * dims);
    float* panel = scratch.part(3, dims * kLanes);
    float* values = scratch.part(4, kCellsAtATime * dims);

    for (int64_t j = 0; j < count; ++j) {
        const float* query = node.query(block.begin + j / group, head * group + j % group);
        for (int64_t d = 0; d < dims; ++d) queries[j * dims + d] = query[d] * node.scale;
    }
    const int32_t* first = seen.cells(block.begin);
    for (int64_t i = 0; i < block.common; i += kLanes) {
        pack(node, head, first + i, block.common - i, panel);
        score_all(queries, count, dims, panel, scores + i, stride);
    }
    for (int64_t t = block.begin; t < block.end; ++t) {
        const int64_t j = (t - block.begin) * group;
        for (int64_t i = block.common; i < seen.count(t); i += kLanes) {
            pack(node, head, seen.cells(t) + i, seen.count(t) - i, panel);
            score_all(queries + j * dims, group, dims, panel, scores + j * stride + i, stride);
        }
    }
    float* scales = scratch.part(5, count);
    for (int64_t j = 0; j < count; ++j)
        scales[j] = weigh(scores + j * stride, seen.count(block.begin + j / group));

    std::memset(sums, 0, static_cast<size_t>(count * dims) * sizeof(float));
    for (int64_t i = 0; i < block.common; i += kCellsAtATime) {
        const int64_t some = std::min(kCellsAtATime, block.common - i);
        unpack(node, head, first + i, some, values);
        gather_all(scores + i, count, stride, values, some, sums, dims);
    }
    for (int64_t t = block.begin; t < block.end; ++t) {
        const int64_t j = (t - block.begin) * group;
        for (int64_t i = block.common; i < seen.count(t); i += kCellsAtATime) {
            const int64_t some = std::min(kCellsAtATime, seen.count(t) - i);
            unpack(node, head, seen.cells(t) + i, some, values);
            gather_all(scores + j * stride + i, group, stride, values, some, sums + j * dims, dims);
        }
    }
    for (int64_t j = 0; j < count; ++j) {
        float* out = node.out(block.begin + j / group, head * group + j % group);
        for (int64_t d = 0; d < dims; ++d) out[d] = sums[j * dims + d] * scales[j];
    }
}
