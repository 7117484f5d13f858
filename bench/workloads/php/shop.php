<?php
/* SPDX-License-Identifier: Apache-2.0 */
namespace Shop;

/*
 * The chain as PHP sees it, for tests/lang/check.h. The one that calls this burns by itself, or in a function
 * of C that it calls two lines further on.
 */
function describe(string $function_of_c = ''): void
{
    $entries = debug_backtrace(0);
    $last = new \ReflectionFunction($entries[1]['function']);
    echo "frame\t{main}\t", place(end($entries)), "\t0\t0\n";
    /* An entry says where it was called: that is where the one before is. */
    for ($i = count($entries) - 1; $i > 1; $i--)
        echo "frame\t", name($entries[$i]), "\t", place($entries[$i - 1]), "\t0\t0\n";
    echo "frame\t", $last->name, "\t", __FILE__, "\t", $function_of_c ? $entries[0]['line'] + 2 : 0, "\t",
        $last->getStartLine(), "\t", $last->getEndLine(), "\n";
    if ($function_of_c)
        echo "frame\t$function_of_c\t\t0\t0\t0\n";
    echo "ready\n";
    flush();
}

function name(array $entry): string
{
    if (in_array($entry['function'], ['include', 'require']))
        return 'include(' . basename($entry['args'][0]) . ')';
    return (isset($entry['class']) ? $entry['class'] . '::' : '') . $entry['function'];
}

/* What C calls has none. */
function place(array $called): string
{
    return isset($called['line']) ? $called['file'] . "\t" . $called['line'] : "\t0";
}

interface Sells
{
    public function total(string $how): int;
}

trait Sorts
{
    public function sorted(string $how): int
    {
        $pair = [2, 1];
        $sum = 0;
        usort($pair, function (int $a, int $b) use ($how, &$sum): int {
            foreach (self::each($how) as $n)
                $sum += $n;
            return $a <=> $b;
        });
        return $sum;
    }
}

final class Cart implements Sells
{
    use Sorts;

    private $levels;

    private function __construct(int $levels)
    {
        $this->levels = $levels;
    }

    public static function open(int $levels): Sells
    {
        return new self($levels);
    }

    public function total(string $how): int
    {
        return array_sum(array_map(function (int $n) use ($how): int {
            return $n + down(
                $this->levels + 2, $this, $how);
        }, [1]));
    }

    private static function each(string $how): \Generator
    {
        $outer = static function () use ($how) {
            yield 1;
            yield caught($how);
        };
        yield from $outer();
    }
}

function caught(string $how): int
{
    try {
        throw new \RuntimeException('caught');
    } catch (\RuntimeException $e) {
        $sum = 0;
    } finally {
        $sum = leaf($how);
    }
    return $sum;
}

function leaf(string $how): int
{
    return ('Shop\burn_' . $how)();
}

function burn_loop(): int
{
    describe();
    for ($x = 1;;)
        for ($i = 0; $i < 1000000; $i++) {
            $x = ($x * 5 +
                $i) & 0xffff;
            if ($x > 70000)
                $x = 0;
        }
}

function burn_hash(): int
{
    $text = str_repeat('abc', 3000000);
    describe('hash');
    for (;;)
        hash('sha256', $text);
}

function burn_regex(): int
{
    ini_set('pcre.backtrack_limit', '1000000000');
    $text = str_repeat('a', 22) . 'b';
    describe(PHP_VERSION_ID < 80400 ? 'preg_match' : '');
    for (;;)
        preg_match('/^(a+)*$/', $text);
}
