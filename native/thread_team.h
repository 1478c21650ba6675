// Threads that sleep until there is work for all of them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace {

// Each thread keeps one Scratch.
template <class Scratch>
class Team {
public:
    explicit Team(int size) : scratch_(static_cast<size_t>(size)) {
        threads_.reserve(static_cast<size_t>(size));
        try {
            for (int n = 1; n < size; ++n) threads_.emplace_back([this, n] { wait(n); });
        } catch (const std::system_error&) {  // no more of them: these have to do
        }
    }
    ~Team() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            over_ = true;
        }
        begun_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }

    // Calls work(number, scratch) for each number below count, from all threads.
    template <class Work>
    void share(int64_t count, const Work& work) {
        std::atomic<int64_t> next{0};
        std::atomic<bool> failed{false};
        auto part = [&](Scratch& own) {
            try {
                for (int64_t n = next++; n < count; n = next++) work(n, own);
            } catch (const std::bad_alloc&) {
                failed = true;
            }
        };
        if (!threads_.empty() && count > 1) {
            std::lock_guard<std::mutex> lock(mutex_);
            part_ = [](const void* what, Scratch& own) { (*static_cast<const decltype(part)*>(what))(own); };
            what_ = &part;
            left_ = threads_.size();
            ++round_;
            begun_.notify_all();
        }
        part(scratch_[0]);
        std::unique_lock<std::mutex> lock(mutex_);
        ended_.wait(lock, [this] { return left_ == 0; });
        if (failed) throw std::bad_alloc();
    }

private:
    void wait(int number) {
        uint64_t seen = 0;
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            begun_.wait(lock, [&] { return over_ || round_ != seen; });
            if (over_) return;
            seen = round_;
            lock.unlock();
            part_(what_, scratch_[static_cast<size_t>(number)]);
            lock.lock();
            if (--left_ == 0) ended_.notify_one();
        }
    }

    std::vector<Scratch> scratch_;
    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::condition_variable begun_, ended_;
    void (*part_)(const void*, Scratch&) = nullptr;
    const void* what_ = nullptr;
    size_t left_ = 0;
    uint64_t round_ = 0;
    bool over_ = false;
};

}  // namespace
