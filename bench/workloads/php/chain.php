<?php
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain.php SECONDS [loop|hash|regex]: a chain of functions over three files, known in names and lines: it
 * prints what PHP says of it, once and from inside (tests/lang/check.h says how). Its innermost function
 * burns the time, by itself, in a function of C, or in a regular expression. It ends by the time limit.
 */
namespace Shop;

require __DIR__ . '/shop.php';

function down(int $levels, Cart $cart, string $how): int
{
    if ($levels > 0)
        return down($levels - 1, $cart, $how) + 1;
    return $cart->sorted($how);
}

function run(string $how): int
{
    return Cart::open(1)->total(
        $how);
}

ini_set('display_errors', '0');
ini_set('log_errors', '0');
$arguments = isset($argv) ? array_slice($argv, 1) : [$_GET['seconds'], $_GET['how']];
require __DIR__ . '/start.php';
