// SPDX-License-Identifier: Apache-2.0
// So that the compiler takes a function without a body.
