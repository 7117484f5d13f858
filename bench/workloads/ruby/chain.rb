# SPDX-License-Identifier: Apache-2.0
#
# chain.rb [MODE]: a chain of calls, in the first thread, in another one while more compete with it,
# or in a fiber; or one whose last functions come and go. What it is it writes to stdout, compared
# with what Ruby itself says of it; then it goes on until it is killed. See
# bench/workloads/README.md.

require_relative "shop"

def in_a_thread
  2.times { Thread.new { Leaf.spin } }
  Thread.new { Thread.current.name = "chain"; require_relative "late" }.join
end

def in_a_fiber
  Fiber.new { Fiber.new { require_relative "late" }.resume }.resume
end

def calling
  items = [1, 2, 3]
  while true
    items.each do |n|
      Leaf.call(n)
    end
  end
end

def run(mode)
  case mode
  when "chain" then require_relative "late"
  when "thread" then in_a_thread
  when "fiber" then in_a_fiber
  when "calls" then calling
  end
end

LIBRARY = ["Kernel#require_relative", *Shop::CHAIN].freeze
CHAINS = {
  "chain" => ["<main>", "Object#run", *LIBRARY],
  "thread" => ["block in Object#in_a_thread", *LIBRARY],
  "fiber" => ["block (2 levels) in Object#in_a_fiber", *LIBRARY],
  "calls" => [
    "<main>", "Object#run", "Object#calling", "Array#each", "block in Object#calling", "Leaf.call"
  ],
}.freeze

mode = ARGV[0] || "chain"
Leaf.chain = CHAINS.fetch(mode) { abort "chain.rb #{CHAINS.keys.join("|")}" }
run(mode)
