<?php
/* SPDX-License-Identifier: Apache-2.0 */
/* Included by chain.php, as the front controllers of frameworks are. */

(static function (array $arguments): void {
    set_time_limit((int)($arguments[0] ?? 5));
    Shop\run($arguments[1] ?? 'loop');
})($arguments);
