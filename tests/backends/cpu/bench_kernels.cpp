// Speed of the CPU kernels: bench_cpu_kernels [ISA] [THREADS] [FILTER]. The best of many short repetitions, because
// other work on the machine only ever makes them slower.
#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <string>

#include "backends/cpu/isa.h"
#include "backends/cpu/memory.h"
#include "backends/cpu/thread_pool.h"
#include "backends/cpu/weights.h"
#include "base/check.h"
#include "base/cpu_topology.h"
#include "quant/encode.h"

namespace hearth::cpu {
namespace {

struct Bench {
  const KernelTable& kernels;
  ThreadPool& pool;
  double read_gb_s = 0;

  // Calls f(tile) for all tiles on all workers.
  void parallel(int64_t tiles, const std::function<void(int64_t, int)>& f) {
    struct Job {
      int64_t tiles;
      const std::function<void(int64_t, int)>& f;
    } job{tiles, f};
    pool.run(
        [](void* context, ThreadPool::Worker& worker) {
          auto& job = *static_cast<Job*>(context);
          worker.each_tile(job.tiles, [&](int64_t t) { job.f(t, worker.index()); });
        },
        &job);
  }

  // Seconds of the fastest run within about half a second. One worker is measured in its CPU time, which leaves out
  // what other programs take.
  double best(const std::function<void()>& f) const {
    auto now = [&] {
      timespec t;
      clock_gettime(pool.workers() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
    };
    double best = 1e9, end = now() + 0.5;
    int runs = 0;
    do {
      double start = now();
      f();
      best = std::min(best, now() - start);
    } while (++runs < 3 || now() < end);
    return best;
  }
};

Buffer buffer(size_t bytes) {
  auto b = Buffer::allocate(bytes, true, "a benchmark");
  HEARTH_CHECK(b, "{}", b.error().message);
  return std::move(*b);
}

void fill_random(Buffer& b, uint32_t seed) {
  std::mt19937_64 random(seed);
  auto* p = reinterpret_cast<uint64_t*>(b.data());
  for (size_t i = 0; i < b.size_bytes() / 8; ++i) p[i] = random();
}

// Sums 64 MiB pieces of a buffer that no cache holds.
void read_bandwidth(Bench& bench) {
  Buffer memory = buffer(size_t{512} << 20);
  fill_random(memory, 1);
  const auto* words = reinterpret_cast<const uint64_t*>(memory.data());
  constexpr int64_t kTiles = 256;
  size_t tile_words = memory.size_bytes() / 8 / kTiles;
  std::atomic<uint64_t> sink = 0;
  double s = bench.best([&] {
    bench.parallel(kTiles, [&](int64_t t, int) {
      const uint64_t* p = words + static_cast<size_t>(t) * tile_words;
      uint64_t a = 0, b = 0, c = 0, d = 0;
      for (size_t i = 0; i < tile_words; i += 16) {  // two cache lines
        a += p[i], b += p[i + 4], c += p[i + 8], d += p[i + 12];
      }
      sink += a + b + c + d;
    });
  });
  bench.read_gb_s = static_cast<double>(memory.size_bytes()) / s / 1e9;
  fmt::print("read bandwidth {:.1f} GB/s\n", bench.read_gb_s);
}

void barriers(Bench& bench) {
  constexpr int kCount = 1000;
  double s = bench.best([&] {
    bench.pool.run(
        [](void*, ThreadPool::Worker& worker) {
          // As many tiles as workers: the usual phase has some, and one without any waits for nobody.
          for (int i = 0; i < kCount; ++i) {
            worker.each_tile(worker.count(), [](int64_t) {});
            worker.barrier();
          }
        },
        nullptr);
  });
  fmt::print("barrier {:.2f} us\n", s / kCount * 1e6);
}

// A planar matrix of about `bytes`, its codes random, its scales those of encoded rows.
struct BenchMatrix {
  BenchMatrix(FormatId format, int64_t rows, int64_t cols, const KernelTable& kernels)
      : memory(buffer(planar_size_bytes(format, rows, cols))) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<size_t>(cols));
    std::vector<std::byte> native(row_bytes(format, cols) * kPanelRows);
    for (int64_t r = 0; r < kPanelRows; ++r) {
      for (float& v : values) v = normal(random);
      encode_row(format, values, native.data() + static_cast<size_t>(r) * row_bytes(format, cols));
    }
    matrix = {.format = format,
              .kind = planar_kind(format),
              .rows = rows,
              .cols = cols,
              .planar = memory.data(),
              .layout = planar_panel(format, cols),
              .kernels = &kernels};
    to_planar(format, kPanelRows, cols, native.data(), memory.data());
    for (int64_t p = 1; p < matrix.panels(); ++p) {
      std::copy_n(memory.data(), matrix.layout.panel_bytes,
                  memory.data() + static_cast<size_t>(p) * matrix.layout.panel_bytes);
    }
  }
  Buffer memory;
  Matrix matrix;
};

void gemv(Bench& bench, FormatId format) {
  constexpr int64_t kCols = 2048, kMostRows = 16;
  auto panel = static_cast<int64_t>(planar_panel(format, kCols).panel_bytes);
  BenchMatrix m(format, (int64_t{160} << 20) / panel * 16, kCols, bench.kernels);
  std::vector<float> x(kMostRows * kCols, 0.5f), scales(kMostRows * kCols / 32), totals(scales.size());
  std::vector<int16_t> codes(kMostRows * kCols);
  std::vector<int32_t> sums16(scales.size() * 2), sums32(scales.size());
  IntRows ints{codes.data(), scales.data(), sums16.data(), sums32.data(), totals.data(), kCols, kCols / 32};
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 97) - 48;
  for (int64_t r = 0; r < kMostRows; ++r) bench.kernels.quantize(x.data() + r * kCols, kCols, 32767, ints, r);
  std::string text;
  for (int64_t rows : {1, 2, 4, 8, 16}) {
    double s = bench.best([&] {
      bench.parallel(m.matrix.panels() / 8, [&](int64_t t, int) {
        alignas(64) float out[kMostRows * kLanes];
        alignas(64) float unpacked[kKBlock * kLanes];
        for (int64_t p = 8 * t; p < 8 * t + 8; ++p) {
          if (has_integer_codes(*m.matrix.kind)) {
            bench.kernels.dot_int[static_cast<size_t>(*m.matrix.kind)](m.matrix.panel_view(p, nullptr), ints, rows,
                                                                       out);
          } else {
            for (int64_t k0 = 0; k0 < kCols; k0 += kKBlock) {
              m.matrix.unpack(p, k0, kKBlock, unpacked);
              bench.kernels.dot_float(unpacked, kKBlock, x.data() + k0, kCols, rows, k0 > 0, out);
            }
          }
        }
      });
    });
    double gb = static_cast<double>(m.matrix.panels() / 8 * 8 * panel) / s / 1e9;
    text += fmt::format("  {} rows {:5.1f} GB/s", rows, gb);
    if (rows == 1) text += fmt::format(" ({:3.0f} %)", gb / bench.read_gb_s * 100);
  }
  fmt::print("gemv {:7}{}\n", format_info(format).name, text);
}

// A panel that stays in the cache to f32: from planar, or from the file's bytes for formats that have no planar layout.
void unpack(Bench& bench, FormatId format) {
  constexpr int64_t kCols = 2048;
  std::mt19937 random(1);
  std::vector<std::byte> native(row_bytes(format, kCols) * kPanelRows);
  for (std::byte& b : native) b = static_cast<std::byte>(random());
  if (can_encode(format)) {  // scales of real sizes: products with subnormal ones are slow
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<size_t>(kCols));
    for (int64_t r = 0; r < kPanelRows; ++r) {
      for (float& v : values) v = normal(random);
      encode_row(format, values, native.data() + static_cast<size_t>(r) * row_bytes(format, kCols));
    }
  }
  Buffer planar = buffer(planar_kind(format) ? planar_size_bytes(format, kPanelRows, kCols) : 64);
  Matrix m{.format = format,
           .kind = planar_kind(format),
           .rows = kPanelRows,
           .cols = kCols,
           .native = native.data(),
           .kernels = &bench.kernels};
  if (m.kind) {
    to_planar(format, kPanelRows, kCols, native.data(), planar.data());
    m.planar = planar.data();
    m.layout = planar_panel(format, kCols);
  }
  constexpr int64_t kRuns = 64;
  double s = bench.best([&] {
    bench.parallel(bench.pool.workers(), [&](int64_t, int) {
      alignas(64) float out[kKBlock * kLanes];
      for (int64_t i = 0; i < kRuns; ++i) {
        for (int64_t k0 = 0; k0 < kCols; k0 += kKBlock) m.unpack(0, k0, kKBlock, out);
      }
    });
  });
  double runs = static_cast<double>(kRuns * bench.pool.workers());
  fmt::print("unpack {:7} {:6.2f} Gweights/s {:6.2f} GB/s{}\n", format_info(format).name,
             runs * kPanelRows * kCols / s / 1e9, runs * static_cast<double>(native.size()) / s / 1e9,
             m.kind ? "" : "  scalar");
}

void gemm(Bench& bench, FormatId format, const Gemm& gemm, const char* name, int64_t cols) {
  constexpr int64_t kFeatures = 1024, kRows = 512;
  BenchMatrix m(format, kFeatures, cols, bench.kernels);
  int64_t groups = (kRows + gemm.rows - 1) / gemm.rows;
  const bool reads_codes = takes_codes(gemm, planar_kind(format));
  std::vector<float> x(static_cast<size_t>(gemm.rows * cols));
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (float& v : x) v = normal(random);
  Buffer packed = buffer(static_cast<size_t>(groups) * gemm.group_bytes(cols));
  for (int64_t g = 0; g < groups; ++g) {
    gemm.pack(x.data(), cols, gemm.rows, cols, g, groups, packed.data());
  }
  std::vector<Buffer> scratch, out;
  for (int i = 0; i < bench.pool.workers(); ++i) {
    scratch.push_back(buffer(gemm.scratch_bytes));
    out.push_back(buffer(static_cast<size_t>(gemm.panels * groups * gemm.rows * kLanes) * sizeof(float)));
  }
  double s = bench.best([&] {
    bench.parallel(m.matrix.panels() / gemm.panels, [&](int64_t t, int worker) {
      PanelReader readers[kMaxTilePanels];
      CodePanel code_panels[kMaxTilePanels];
      for (int64_t p = 0; p < gemm.panels; ++p) {
        int64_t panel = t * gemm.panels + p;
        if (reads_codes) code_panels[p] = m.matrix.code_panel(gemm, panel, nullptr);
        readers[p] = reads_codes ? code_panels[p].reader() : m.matrix.reader(panel);
      }
      gemm.multiply({.a = packed.data(),
                     .rows = kRows,
                     .cols = cols,
                     .panels = gemm.panels,
                     .read = readers,
                     .scratch = scratch[static_cast<size_t>(worker)].data(),
                     .out = reinterpret_cast<float*>(out[static_cast<size_t>(worker)].data())});
    });
  });
  fmt::print("{} {:7}  512 x {} x 1024: {:6.1f} GFLOP/s\n", name, format_info(format).name, cols,
             2.0 * cols * kFeatures * kRows / s / 1e9);
}

void attention(Bench& bench) {
  constexpr int64_t kHeadDim = 128, kHeads = 2, kTokens = 4096, kKvHeads = 8 * 28;
  size_t block = kHeadDim * kLanes * 2;
  Buffer memory = buffer(2 * block * (kTokens / kLanes) * kKvHeads);
  std::memset(memory.data(), 0, memory.size_bytes());
  std::vector<int32_t> pages(kTokens / kLanes);
  for (size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<int32_t>(i);
  auto view = [&](int64_t head) {
    return KvView{.base = reinterpret_cast<uint8_t*>(memory.data()) + static_cast<size_t>(head) * 2 * block,
                  .page_stride_bytes = 2 * block * kKvHeads,
                  .v_offset_bytes = block,
                  .pages = pages.data(),
                  .head_dim = kHeadDim,
                  .v_stride = kHeadDim,
                  .format = KvFormat::kF16};
  };
  std::vector<float> q(kMaxQueryRows * kHeadDim, 0.1f);
  double s = bench.best([&] {
    bench.parallel(kKvHeads, [&](int64_t t, int) {
      alignas(64) float scratch[kHeads * kKeySplit], out[kHeads * kHeadDim], max[kHeads], sum[kHeads];
      for (int64_t from = 0; from < kTokens; from += kKeySplit) {
        bench.kernels.attend_decode({.kv = view(t),
                                     .q = q.data(),
                                     .heads = kHeads,
                                     .begin = from,
                                     .end = from + kKeySplit,
                                     .scratch = scratch,
                                     .max = max,
                                     .sum = sum,
                                     .out = out});
      }
    });
  });
  double gb = static_cast<double>(memory.size_bytes()) / s / 1e9;
  fmt::print("attention decode, f16, 2 heads of 128 share keys, depth 4096: {:.1f} GB/s ({:.0f} %)\n", gb,
             gb / bench.read_gb_s * 100);

  for (const PrefillKernel* kernel : {&bench.kernels.prefill_f32, &bench.kernels.prefill_amx}) {
    if (!kernel->attend) continue;
    const int64_t queries = kernel->rows / kHeads;
    double p = bench.best([&] {
      bench.parallel(8, [&](int64_t t, int) {
        static thread_local Buffer scratch = buffer(prefill_scratch_floats(kHeadDim) * sizeof(float));
        static thread_local std::vector<float> out(kMaxQueryRows * kHeadDim);
        kernel->attend({.kv = view(t),
                        .q = q.data(),
                        .heads = kHeads,
                        .queries = queries,
                        .position = kTokens - queries,
                        .scratch = reinterpret_cast<float*>(scratch.data()),
                        .out = out.data()});
      });
    });
    fmt::print("attention prefill {}, the same: {:.1f} GFLOP/s\n", kernel == &bench.kernels.prefill_f32 ? "f32" : "amx",
               8.0 * static_cast<double>(kernel->rows) * kTokens * kHeadDim * 4 / p / 1e9);
  }
}

int run(int argc, char** argv) {
  std::string isa = argc > 1 ? argv[1] : "", filter = argc > 3 ? argv[3] : "";
  auto kernels = select_isa(isa);
  if (!kernels) {
    fmt::print(stderr, "{}\n", kernels.error().message);
    return 2;
  }
  CpuTopology topology = read_cpu_topology();
  int64_t threads = argc > 2 ? std::atoll(argv[2]) : topology.workers();
  std::vector<int> cpus(topology.cores.begin(),
                        topology.cores.begin() + std::min<int64_t>(threads, std::ssize(topology.cores)));
  auto pool = ThreadPool::start(cpus);
  if (!pool) {
    fmt::print(stderr, "{}\n", pool.error().message);
    return 1;
  }
  Bench bench{**kernels, **pool};
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  fmt::print("{}, {} workers\n", (*kernels)->title, (*pool)->workers());
  read_bandwidth(bench);
  barriers(bench);
  auto wanted = [&](std::string_view name) { return filter.empty() || name.find(filter) != std::string_view::npos; };
  for (FormatId id : all_formats()) {
    if (planar_kind(id) && wanted(fmt::format("gemv {}", format_info(id).name))) gemv(bench, id);
  }
  for (FormatId id : all_formats()) {
    if (wanted(fmt::format("unpack {}", format_info(id).name))) unpack(bench, id);
  }
  for (FormatId id : all_formats()) {
    const KernelTable& k = bench.kernels;
    struct {
      const char* name;
      const Gemm& gemm;
    } all[] = {{"gemm_f32", k.gemm_f32},
               {"gemm_int", k.gemm_int},
               {"gemm_bytes", k.gemm_bytes},
               {"gemm_bf16", k.gemm_bf16},
               {"gemm_amx", k.gemm_amx}};
    for (auto [name, kernel] : all) {
      const bool codes = &kernel == &k.gemm_int || &kernel == &k.gemm_bytes;
      const bool takes = planar_kind(id) && kernel.multiply && (!codes || takes_codes(kernel, planar_kind(id)));
      if (takes && wanted(fmt::format("{} {}", name, format_info(id).name))) {
        gemm(bench, id, kernel, name, 2048);
        if (id == FormatId::kQ4_K) gemm(bench, id, kernel, name, 6144);
      }
    }
  }
  if (wanted("attention")) attention(bench);
  return 0;
}

}  // namespace
}  // namespace hearth::cpu

int main(int argc, char** argv) { return hearth::cpu::run(argc, argv); }
