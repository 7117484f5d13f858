# SPDX-License-Identifier: Apache-2.0

require_relative "leaf"

module Shop
  # What late.rb calls, root first.
  CHAIN = [
    "<top (required)>",
    "<class:Late>",
    "Shop.open",
    "Array#each",
    "block in Shop.open",
    "block in <class:Late>",
    "Shop::Cart#total",
    "Enumerable#sort_by",
    "Array#each",
    "block in Shop::Cart#total",
    "block (2 levels) in Shop::Cart#total",
    "Shop::Discount#apply",
    "Shop::Discount#down",
    "Shop::Discount#down",
    "Shop::Discount#down",
    "Shop::Discount#down",
    "block in Shop::Discount#apply",
    "block (3 levels) in Shop::Cart#total",
    "block in <class:Cart>",
    "Shop::Cart#parse",
    "Shop::Cart#risky",
    "rescue in Shop::Cart#risky",
    "Kernel#eval",
    "rescue in Shop::Cart#risky",
    "Shop::Cart.last",
    "Array#map",
    "block in Shop::Cart.last",
    "ensured",
    "ensure in ensured",
    "single",
    "Leaf.burn",
    "Leaf.turn",
  ].freeze

  module Discount
    def apply(number, &block)
      shown = lambda { |n| block.call(n) }
      down(3, shown, number)
    end

    def down(depth, block, number)
      return block.call(number) if depth.zero?

      down(depth - 1, block, number)
    end
  end

  class Cart
    include Discount

    def initialize(items)
      @items = items
    end

    def total
      @items.sort_by do |item|
        twice = proc { |n| apply(n) { |m| defined_later(m) } }
        twice.call(item)
      end
    end

    # A method that is a block: it goes by the label of the block.
    define_method(:defined_later) do |n|
      parse("item #{n}")
    end

    # $~ stands where the method's entry would.
    def parse(text)
      risky if text =~ /item (\d+)/
    end

    def risky
      raise ArgumentError, "expected"
    rescue ArgumentError
      eval("Cart.last", binding, "evaluated.rb", 7)
    end

    class << self
      def last
        [1].map { |n| Shop.nameless.new.ensured(n) }
      end
    end
  end

  def self.open(items)
    [Cart.new(items)].each do |cart|
      yield cart
    end
  end

  # Neither its class nor the object below has a name.
  def self.nameless
    Class.new do
      def ensured(number)
        raise "expected" if number.positive?
      ensure
        object = Object.new
        def object.single
          Leaf.burn
        end
        object.single
      end
    end
  end
end
