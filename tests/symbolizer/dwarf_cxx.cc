/* SPDX-License-Identifier: Apache-2.0 */
/* Inlining in C++: templates, lambdas, local classes, namespaces. It only has to be compiled. */
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace shapes
{
namespace
{
struct point {
	double x, y;
	point operator+(const point &o) const { return {x + o.x, y + o.y}; }
	double squared() const { return x * x + y * y; }
};

template <typename F> static inline double each(const std::vector<point> &points, F f)
{
	double sum = 0;

	for (const point &p : points)
		sum += f(p);
	return sum;
}
} // namespace

class shape
{
      public:
	virtual ~shape() = default;
	virtual double area() const = 0;
	static int count;
};
int shape::count;

class polygon : public shape
{
	std::vector<point> points;

      public:
	explicit polygon(int n)
	{
		for (int i = 0; i < n; i++)
			points.push_back({i * 1.5, i % 7 * 0.5});
		std::sort(points.begin(), points.end(), [](const point &a, const point &b) {
			return a.squared() < b.squared() || (a.squared() == b.squared() && a.x < b.x);
		});
		count++;
	}
	double area() const override
	{
		struct local {
			static double twice(const point &p) { return 2 * p.squared(); }
		};
		return each(points, local::twice) +
		       each(points, [this](const point &p) { return (p + points[0]).squared(); });
	}
};
} // namespace shapes

static std::map<std::string, std::vector<int>> table;

__attribute__((noinline)) static int fill(int n)
{
	for (int i = 0; i < n; i++) {
		std::string key = "key" + std::to_string(i % 17);

		if (key.size() > 100)
			throw std::string("never: ") + key;
		table[key].push_back(i);
	}
	return std::accumulate(table.begin(), table.end(), 0, [](int sum, const auto &e) {
		return sum + std::accumulate(e.second.begin(), e.second.end(), 0);
	});
}

int unused_and_dropped(int n)
{
	return fill(n) + fill(n + 1);
}

int main(int argc, char **argv)
{
	std::vector<std::unique_ptr<shapes::shape>> all;
	std::function<double(double)> scale = [argc](double x) { return x * argc; };
	double sum = 0;

	for (int i = 0; i < 50; i++)
		all.push_back(std::make_unique<shapes::polygon>(i + 1));
	for (const auto &s : all)
		sum += scale(s->area());
	try {
		sum += fill(argc * 100);
	} catch (const std::string &what) {
		std::puts(what.c_str());
	}
	std::printf("%s %g %d\n", argv[0], sum, shapes::shape::count);
	return 0;
}
