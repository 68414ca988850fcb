// linked_part.cu defines this function, which the host code of linked.cu calls.
#pragma once

void launch_second(int* x);
int counter_value();
