# SPDX-License-Identifier: Apache-2.0

# Where the chains end.
module Leaf
  # Functions of C: they have no file.
  NATIVE = %w[Kernel#require_relative Array#each Enumerable#sort_by Kernel#eval Array#map].freeze

  class << self
    attr_writer :chain

    def burn
      while true
        turn
      end
    end

    # A JIT has it from the second call on.
    def turn
      tell(caller_locations(0), __LINE__ - 1, __LINE__ + 6) if @chain
      n = 0
      while n < 500_000
        n += 3
        n -= 1
      end
    end

    def call(number)
      tell(caller_locations(0), __LINE__ - 1, __LINE__ + 5) if @chain
      n = number
      while n < 50
        n += 1
      end
    end

    def spin
      sleep 0.01 while @chain
      n = 0
      n = (n + 1) & 0xffff while true
    end

    private

    # What is told: tests/lang/check.h. Only the last function's lines are not Ruby's.
    def tell(locations, first, last)
      locations = with_left_out(locations.reverse)
      abort "#{locations.size} frames, not #{@chain.size}" if locations.size != @chain.size
      @chain.zip(locations).each_with_index do |(name, (location, line)), i|
        lines = i + 1 < @chain.size ? [line, 0, 0] : [0, first, last]
        tell_frame(name, location, lines)
      end
      puts "ready"
      $stdout.flush
      @chain = nil
    end

    # From 3.4 on Ruby does not say "rescue in x" and "ensure in x", and gives their line to x: its
    # own is not known then (0).
    def with_left_out(locations)
      told = locations.map { |location| [location, location.lineno] }
      return told if RUBY_VERSION < "3.4"

      @chain.each_cons(2).with_index do |(name, inner), i|
        next unless ["rescue in #{name}", "ensure in #{name}"].include?(inner)

        told.insert(i, [told[i][0], 0])
      end
      told
    end

    # Up to 3.3 labels do not have the class, later ones not what is rescued or ensured.
    def tell_frame(name, location, lines)
      labels = [name, name.sub(/[A-Z][\w:]*[#.]/, ""), name.sub(/\A(rescue|ensure) in /, "")]
      abort "#{name}: Ruby says #{location.label}" unless labels.include?(location.label)
      if NATIVE.include?(name)
        puts ["frame", name, "", 0, 0, 0].join("\t")
      else
        puts ["frame", name, File.basename(location.path), *lines].join("\t")
      end
    end
  end
end
