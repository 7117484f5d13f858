/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause OR Apache-2.0 */
#ifndef SCONCE_BPF_LANG_PHP_H
#define SCONCE_BPF_LANG_PHP_H

#endif
