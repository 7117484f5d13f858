# SPDX-License-Identifier: Apache-2.0

class Late
  # The body of a class is code that runs.
  Shop.open([3]) { |cart| cart.total }
end
