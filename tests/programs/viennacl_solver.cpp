// SPDX-License-Identifier: Apache-2.0
//
// A C++ client: ViennaCL solves a sparse system (a Poisson equation on a square) with conjugate gradients and BiCGStab on OpenCL, and
// multiplies dense matrices. Residuals are checked; all results are printed bit for bit.
#define VIENNACL_WITH_OPENCL
#include <viennacl/compressed_matrix.hpp>
#include <viennacl/linalg/bicgstab.hpp>
#include <viennacl/linalg/cg.hpp>
#include <viennacl/linalg/norm_2.hpp>
#include <viennacl/linalg/prod.hpp>
#include <viennacl/matrix.hpp>
#include <viennacl/vector.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <vector>

namespace
{
uint64_t hash(const void *data, size_t n)
{
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ static_cast<const unsigned char *>(data)[i]) * 1099511628211u;
    return h;
}

bool solve(const char *name, int which)
{
    const int side = 32, n = side * side;
    std::vector<std::map<unsigned, float>> host(n);
    for (int i = 0; i < n; i++) {
        int x = i % side, y = i / side;
        host[i][i] = 4;
        if (x > 0)
            host[i][i - 1] = -1;
        if (x < side - 1)
            host[i][i + 1] = -1;
        if (y > 0)
            host[i][i - side] = -1;
        if (y < side - 1)
            host[i][i + side] = -1;
    }
    std::vector<float> b(n);
    for (int i = 0; i < n; i++)
        b[i] = static_cast<float>(i % 7) - 3;
    viennacl::compressed_matrix<float> matrix(n, n);
    viennacl::vector<float> rhs(n), x(n);
    viennacl::copy(host, matrix);
    viennacl::copy(b, rhs);
    if (which == 0)
        x = viennacl::linalg::solve(matrix, rhs, viennacl::linalg::cg_tag(1e-5, 300));
    else
        x = viennacl::linalg::solve(matrix, rhs, viennacl::linalg::bicgstab_tag(1e-5, 300));
    viennacl::vector<float> residual = rhs;
    residual -= viennacl::linalg::prod(matrix, x);
    float norm = viennacl::linalg::norm_2(residual), of = viennacl::linalg::norm_2(rhs);
    std::vector<float> back(n);
    viennacl::copy(x, back);
    std::printf("%s %016llx\n", name, static_cast<unsigned long long>(hash(back.data(), n * sizeof(float))));
    if (!(norm < 1e-3f * of)) {
        std::printf("WRONG %s: residual %g of %g\n", name, norm, of);
        return false;
    }
    return true;
}

bool product()
{
    const int n = 96;
    std::vector<std::vector<float>> a(n, std::vector<float>(n)), b = a, c = a;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            a[i][j] = static_cast<float>((i * 3 + j) % 11);
            b[i][j] = static_cast<float>((i + j * 5) % 13);
        }
    viennacl::matrix<float> x(n, n), y(n, n), z(n, n);
    viennacl::copy(a, x);
    viennacl::copy(b, y);
    z = viennacl::linalg::prod(x, y);
    viennacl::copy(z, c);
    bool right = true;
    uint64_t h = 0;
    for (int i = 0; i < n; i++) {
        h ^= hash(c[i].data(), n * sizeof(float)) * (2 * i + 1);
        for (int j = 0; j < n; j++) {
            float sum = 0; // small whole numbers: exact in any order
            for (int k = 0; k < n; k++)
                sum += a[i][k] * b[k][j];
            right = right && sum == c[i][j];
        }
    }
    std::printf("product %016llx\n", static_cast<unsigned long long>(h));
    if (!right)
        std::printf("WRONG product\n");
    return right;
}
} // namespace

int main()
{
    std::printf("device %s\n", viennacl::ocl::current_device().name().c_str());
    bool right = solve("cg", 0);
    right = solve("bicgstab", 1) && right;
    right = product() && right;
    return right ? 0 : 1;
}
