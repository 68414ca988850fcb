// What linked_part.cu defines for the host code of linked.cu.
#pragma once

void launch_second(int* x);
int counter_value();
